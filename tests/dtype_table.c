/*
 * A filter that converts elements of a gbx_dtype, for dtype_numpy_test.py:
 *     dtype_table decode DTYPE < elements > float64s
 *     dtype_table encode DTYPE < float64s > elements
 */
#include <stdio.h>

#include <glassbox/tensor.h>

#define CHUNK_COUNT 4096 /* elements; even, so that only the last chunk can end in half a byte */

static bool write_all(const void *bytes, size_t size) {
    return fwrite(bytes, 1, size, stdout) == size;
}

static bool decode(uint32_t dtype) {
    const size_t bits = gbx_dtype_bits(dtype);
    static unsigned char elements[CHUNK_COUNT * 8];
    static double values[CHUNK_COUNT];
    size_t got;
    while ((got = fread(elements, 1, CHUNK_COUNT * bits / 8, stdin)) > 0) {
        const size_t count = got * 8 / bits;
        gbx_dtype_array_to_f64(dtype, elements, count, values);
        if (!write_all(values, count * sizeof values[0]))
            return false;
    }
    return !ferror(stdin);
}

static bool encode(uint32_t dtype) {
    const size_t bits = gbx_dtype_bits(dtype);
    static unsigned char elements[CHUNK_COUNT * 8];
    static double values[CHUNK_COUNT];
    size_t count;
    while ((count = fread(values, sizeof values[0], CHUNK_COUNT, stdin)) > 0) {
        gbx_dtype_array_from_f64(dtype, values, count, elements);
        if (!write_all(elements, (count * bits + 7) / 8))
            return false;
    }
    return !ferror(stdin);
}

int main(int argc, char **argv) {
    const gbx_dtype dtype = argc == 3 ? gbx_dtype_parse(argv[2]) : GBX_DTYPE_NONE;
    const bool is_decode = argc == 3 && strcmp(argv[1], "decode") == 0;
    const bool is_encode = argc == 3 && strcmp(argv[1], "encode") == 0;
    if (dtype == GBX_DTYPE_NONE || (!is_decode && !is_encode)) {
        fprintf(stderr, "usage: dtype_table decode|encode DTYPE\n");
        return 2;
    }
    const bool is_done = is_decode ? decode(dtype) : encode(dtype);
    if (!is_done || fflush(stdout) != 0) {
        perror("dtype_table");
        return 1;
    }
    return 0;
}
