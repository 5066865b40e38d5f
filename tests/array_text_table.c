/*
 * A filter that prints arrays and histograms, for array_text_numpy_test.py. A request is a line,
 * followed by the elements as a tensor stores them (int4: one per byte):
 *     array DTYPE IS_FULL LINE_WIDTH STORED NDIMS [LENGTH]...     the array and a line of one "\1"
 *     element DTYPE COUNT                                         a line an element
 *     histogram DTYPE COUNT BINS LOW HIGH                         the counts in one line
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/array_text.h"
#include "analysis/histogram.h"

typedef struct packed_elements {
    size_t bytes; /* of an element */
    unsigned char *data;
} packed_elements;

static gbx_status read_packed(const void *context, uint64_t first, size_t count,
                              uint64_t *out_bits) {
    const packed_elements *packed = context;
    for (size_t i = 0; i < count; ++i) {
        out_bits[i] = 0;
        memcpy(&out_bits[i], packed->data + (first + i) * packed->bytes, packed->bytes);
    }
    return NULL;
}

static void refuse(const char *what) {
    fprintf(stderr, "array_text_table: %s\n", what);
    exit(2);
}

static int64_t read_number(void) {
    int64_t number;
    if (scanf("%" SCNd64, &number) != 1)
        refuse("a number is missing");
    return number;
}

static double read_float(void) {
    double number;
    if (scanf("%lf", &number) != 1)
        refuse("a float is missing");
    return number;
}

/* The line must end here; the elements follow. */
static packed_elements read_elements(uint32_t dtype, uint64_t count) {
    packed_elements packed = {.bytes = (gbx_dtype_bits(dtype) + 7) / 8};
    packed.data = malloc(count * packed.bytes + 1);
    if (!packed.data || getchar() != '\n' ||
        fread(packed.data, packed.bytes, count, stdin) != count)
        refuse("elements are missing");
    return packed;
}

static void check(gbx_status status) {
    if (status)
        refuse(gbx_status_message(status));
}

static void print_array(gbx_elements elements) {
    const gbx_array_text_options options = {.is_full = read_number() != 0,
                                            .line_width = (size_t)read_number()};
    elements.stored = (uint64_t)read_number();
    elements.ndims = (uint32_t)read_number();
    elements.count = 1;
    for (uint32_t i = 0; i < elements.ndims; ++i) {
        elements.shape[i] = read_number();
        elements.count *= (uint64_t)elements.shape[i];
    }
    const packed_elements packed = read_elements(elements.dtype, elements.stored);
    elements.context = &packed;
    check(gbx_array_print(stdout, &elements, &options));
    printf("\1\n");
    free(packed.data);
}

static void print_elements(uint32_t dtype) {
    const uint64_t count = (uint64_t)read_number();
    const packed_elements packed = read_elements(dtype, count);
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t bits;
        char text[GBX_ELEMENT_TEXT_BYTES];
        check(read_packed(&packed, i, 1, &bits));
        const size_t length = gbx_element_format(dtype, bits, text);
        if (length != strlen(text))
            refuse("the length of an element's text is wrong");
        puts(text);
    }
    free(packed.data);
}

static void print_histogram(gbx_elements elements) {
    elements.count = (uint64_t)read_number();
    elements.stored = elements.count;
    const size_t bins = (size_t)read_number();
    const double low = read_float();
    const double high = read_float();
    const packed_elements packed = read_elements(elements.dtype, elements.count);
    elements.context = &packed;
    gbx_histogram histogram;
    check(gbx_histogram_count(&elements, low, high, bins, &histogram));
    for (size_t i = 0; i < histogram.bin_count; ++i)
        printf("%" PRIu64 " ", histogram.counts[i]);
    printf("%" PRIu64 "\n", histogram.finite_count);
    free(packed.data);
}

int main(void) {
    char request[16];
    char name[16];
    while (scanf("%15s %15s", request, name) == 2) {
        gbx_elements elements = {.dtype = gbx_dtype_parse(name), .read = read_packed};
        if (strcmp(request, "array") == 0)
            print_array(elements);
        else if (strcmp(request, "element") == 0)
            print_elements(elements.dtype);
        else if (strcmp(request, "histogram") == 0)
            print_histogram(elements);
        else
            refuse(request);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
