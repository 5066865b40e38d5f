#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensor/npy.h"

enum { PAYLOAD_BYTES = 30 * 8 };

static char path[] = "/tmp/glassbox-npy-test-XXXXXX";

static int make_file(void **state) {
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd) != 0;
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static gbx_tensor tensor_of(gbx_dtype dtype, uint32_t ndims, const int64_t *shape) {
    gbx_tensor tensor;
    gbx_status status = gbx_tensor_contiguous(0, dtype, ndims, shape, &tensor);
    assert_null(status);
    return tensor;
}

static void put(const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* A version 1.0 file with this header and these elements. */
static void put_npy(const char *header, const void *elements, size_t size) {
    char bytes[512] = "\x93NUMPY\x01";
    size_t length = strlen(header);
    bytes[8] = (char)length;
    memcpy(bytes + 10, header, length);
    memcpy(bytes + 10 + length, elements, size);
    put(bytes, 10 + length + size);
}

static void check_bad(gbx_status status, const char *part) {
    assert_int_equal(gbx_status_code(status), GBX_BAD_FORMAT);
    if (!strstr(gbx_status_message(status), part))
        fail_msg("\"%s\" is not in \"%s\"", part, gbx_status_message(status));
    gbx_status_free(status);
}

static void check_ok(gbx_status status) {
    assert_string_equal(gbx_status_message(status), "");
}

static void put_raw(const gbx_tensor *tensor, const void *payload) {
    unsigned char bytes[GBX_NPY_HEADER_BYTES + PAYLOAD_BYTES];
    size_t length = gbx_npy_format_header(tensor->dtype, tensor->ndims, tensor->shape, bytes);
    size_t size = gbx_tensor_payload_bytes(tensor);
    memcpy(bytes + length, payload, size);
    put(bytes, length + size);
}

/* Rows of 5 elements, or a scalar: NaN equals NaN, the padding of a row does not count. */
static void check_values(const gbx_tensor *tensor, const unsigned char *got,
                         const unsigned char *want) {
    size_t row = tensor->ndims ? (size_t)tensor->shape[tensor->ndims - 1] : 1;
    size_t row_bytes = (row * gbx_dtype_bits(tensor->dtype) + 7) / 8;
    for (size_t i = 0; i < (size_t)gbx_tensor_numel(tensor) / row; ++i) {
        double got_values[5], want_values[5];
        gbx_dtype_array_to_f64(tensor->dtype, got + i * row_bytes, row, got_values);
        gbx_dtype_array_to_f64(tensor->dtype, want + i * row_bytes, row, want_values);
        for (size_t k = 0; k < row; ++k)
            assert_true(got_values[k] == want_values[k] ||
                        (isnan(got_values[k]) && isnan(want_values[k])));
    }
}

static void what_is_written_reads_back(void **state) {
    (void)state;
    int64_t shape[] = {2, 3, 5};
    unsigned char written[PAYLOAD_BYTES];
    unsigned char read[PAYLOAD_BYTES];
    for (size_t i = 0; i < sizeof written; ++i)
        written[i] = (unsigned char)(i * 37 + 1);
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        for (uint32_t ndims = 0; ndims <= 3; ++ndims) {
            gbx_tensor tensor = tensor_of((gbx_dtype)dtype, ndims, shape + 3 - ndims);
            memset(read, 0, sizeof read);
            put_raw(&tensor, written);
            check_ok(gbx_npy_read(path, &tensor, read));
            assert_memory_equal(read, written, gbx_tensor_payload_bytes(&tensor));
            memset(read, 0, sizeof read);
            check_ok(gbx_npy_write_numbers(path, &tensor, written));
            check_ok(gbx_npy_read_converted(path, &tensor, read));
            check_values(&tensor, read, written);
        }
    }
}

/* Every value of float4_e2m1 is stored as the float32 of its definition. */
static void raw_dtypes_are_written_as_numbers(void **state) {
    (void)state;
    static const float expected[] = {0,     0.5F,  1,  1.5F,  2,  3,  4, 6,
                                     -0.0F, -0.5F, -1, -1.5F, -2, -3, -4};
    static const unsigned char packed[] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
    const int64_t shape = 15;
    float read[15];
    gbx_tensor f4 = tensor_of(GBX_FLOAT4_E2M1, 1, &shape), f32 = tensor_of(GBX_FLOAT32, 1, &shape);
    check_ok(gbx_npy_write_numbers(path, &f4, packed));
    check_ok(gbx_npy_read(path, &f32, read));
    assert_memory_equal(read, expected, sizeof expected);
    assert_int_equal(gbx_npy_number_dtype(GBX_INT4), GBX_INT8);
    assert_int_equal(gbx_npy_number_dtype(GBX_FLOAT8_E8M0), GBX_FLOAT32);
    assert_int_equal(gbx_npy_number_dtype(GBX_UINT64), GBX_UINT64);
}

/* Byte for byte what numpy.save writes. */
static void file_is_that_of_numpy(void **state) {
    (void)state;
    int64_t shape[] = {2, 1};
    const float values[] = {1.0f, -2.0f};
    gbx_tensor tensor = tensor_of(GBX_FLOAT32, 2, shape);
    char expected[128 + 8];
    char got[sizeof expected + 1];
    memset(expected, ' ', sizeof expected);
    memcpy(expected, "\x93NUMPY\x01\x00\x76\x00", 10);
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
    memcpy(expected + 10, header, strlen(header));
    expected[127] = '\n';
    memcpy(expected + 128, values, sizeof values);
    check_ok(gbx_npy_write_numbers(path, &tensor, values));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(got, 1, sizeof got, file), sizeof expected);
    fclose(file);
    assert_memory_equal(got, expected, sizeof expected);
}

static void headers_are_read_in_any_order(void **state) {
    (void)state;
    int64_t shape[] = {2};
    const uint16_t values[] = {7, 8};
    uint16_t read[2] = {0, 0};
    gbx_tensor tensor = tensor_of(GBX_UINT16, 1, shape);
    put_npy("{ \"shape\":(2,),'fortran_order' : False, 'descr':'<u2'}\n", values, 4);
    check_ok(gbx_npy_read(path, &tensor, read));
    assert_memory_equal(read, values, 4);
    /* Version 2.0 has four bytes of length. */
    char bytes[128] = "\x93NUMPY\x02";
    static const char header[] = "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }\n";
    bytes[8] = (char)strlen(header);
    memcpy(bytes + 12, header, strlen(header));
    memcpy(bytes + 12 + strlen(header), values, 4);
    put(bytes, 12 + strlen(header) + 4);
    memset(read, 0, sizeof read);
    check_ok(gbx_npy_read(path, &tensor, read));
    assert_memory_equal(read, values, 4);
}

static void raw_dtypes_come_opaque_too(void **state) {
    (void)state;
    int64_t shape[] = {2};
    const uint16_t values[] = {0x3f80, 0x4000};
    uint16_t read[2];
    gbx_tensor tensor = tensor_of(GBX_BFLOAT16, 1, shape);
    put_npy("{'descr': '|V2', 'fortran_order': False, 'shape': (2,), }\n", values, 4);
    check_ok(gbx_npy_read(path, &tensor, read));
    assert_memory_equal(read, values, 4);
    tensor = tensor_of(GBX_FLOAT16, 1, shape);
    check_bad(gbx_npy_read(path, &tensor, read), "elements of |V2; expected <f2 for float16");
}

static void bad_headers_are_refused(void **state) {
    (void)state;
    int64_t shape[] = {2};
    float read[2];
    const float values[] = {1, 2};
    gbx_tensor tensor = tensor_of(GBX_FLOAT32, 1, shape);
    static const char *const headers[] = {
        "",
        "{",
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': maybe, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4000000000000000000000000000000', 'fortran_order': False, 'shape': (2,)}",
        "{'desc",
        "{'other': 1}",
    };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; ++i) {
        put_npy(headers[i], values, sizeof values);
        check_bad(gbx_npy_read(path, &tensor, read), "the header of this .npy file is not");
    }
    put_npy("{'descr': '', 'fortran_order': False, 'shape': (2,)}", values, sizeof values);
    check_bad(gbx_npy_read(path, &tensor, read), "bytes of elements");
    put_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8)}", values,
            8);
    check_bad(gbx_npy_read(path, &tensor, read), "8 bytes of elements, but its header says");
    put_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2)}", values, 8);
    check_bad(gbx_npy_read(path, &tensor, read), "more than 8 dimensions");
    put("\x93NUMPY\x01\x00\xff\x00{", 11);
    check_bad(gbx_npy_read(path, &tensor, read), "the file is cut short");
    put("\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13);
    check_bad(gbx_npy_read(path, &tensor, read), "a header of 4294967295 bytes");
    put("\x93NUM", 4);
    check_bad(gbx_npy_read(path, &tensor, read), "not a .npy file");
}

static void numbers_are_converted_once(void **state) {
    (void)state;
    int64_t shape[] = {2, 3};
    /* 1 + 2^-8 + 2^-30 is above the midpoint of two bfloat16; rounded to float32, it is on it. */
    const double values[] = {1.0 + 0x1p-8 + 0x1p-30, 1.0 + 0x1p-8, -0.0, INFINITY, 3.0, 1e-45};
    static const uint16_t expected[] = {0x3f81, 0x3f80, 0x8000, 0x7f80, 0x4040, 0};
    uint16_t read[6];
    gbx_tensor f64 = tensor_of(GBX_FLOAT64, 2, shape);
    gbx_tensor bf16 = tensor_of(GBX_BFLOAT16, 2, shape);
    check_ok(gbx_npy_write_numbers(path, &f64, values));
    check_ok(gbx_npy_read_converted(path, &bf16, read));
    assert_memory_equal(read, expected, sizeof read);
    const signed char small[] = {1, -2, 3, -4, 5, -6};
    static const unsigned char packed[] = {0xe1, 0x03, 0x5c, 0x0a};
    unsigned char got[4];
    gbx_tensor i8 = tensor_of(GBX_INT8, 2, shape);
    gbx_tensor i4 = tensor_of(GBX_INT4, 2, shape);
    check_ok(gbx_npy_write_numbers(path, &i8, small));
    check_ok(gbx_npy_read_converted(path, &i4, got));
    assert_memory_equal(got, packed, sizeof packed);
}

/* The longest possible header: eight dimensions of 19 digits, of int4, whose last one is halved. */
static void headers_of_any_shape_are_complete(void **state) {
    (void)state;
    int64_t shape[GBX_MAX_DIMS];
    unsigned char header[GBX_NPY_HEADER_BYTES];
    for (int d = 0; d < GBX_MAX_DIMS; ++d)
        shape[d] = INT64_MAX;
    size_t length = gbx_npy_format_header(GBX_INT4, GBX_MAX_DIMS, shape, header);
    assert_int_equal(length % 64, 0);
    assert_int_equal(header[8] + 256 * header[9], length - 10);
    assert_int_equal(header[length - 1], '\n');
    header[length - 1] = '\0';
    const char *text = (const char *)header + 10;
    assert_non_null(strstr(text, "{'descr': '|u1', 'fortran_order': False, 'shape': (92233"));
    assert_non_null(strstr(text, ", 9223372036854775807, 4611686018427387904), }"));
    length = gbx_npy_format_header(GBX_FLOAT64, 0, NULL, header);
    assert_int_equal(length, 128);
    assert_non_null(
        strstr((const char *)header + 10, "'<f8', 'fortran_order': False, 'shape': ()"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(raw_dtypes_are_written_as_numbers),
        cmocka_unit_test(file_is_that_of_numpy),
        cmocka_unit_test(headers_are_read_in_any_order),
        cmocka_unit_test(raw_dtypes_come_opaque_too),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(numbers_are_converted_once),
        cmocka_unit_test(headers_of_any_shape_are_complete),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
