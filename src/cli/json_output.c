#include "cli/json_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"

gbx_status gbx_json_to_stdout(void *context, const void *bytes, size_t size) {
    (void)context;
    if (fwrite(bytes, 1, size, stdout) == size && fflush(stdout) == 0)
        return NULL;
    gbx_status failure = gbx_fail(GBX_IO, "writing to stdout: %s", strerror(errno));
    __fpurge(stdout); /* told once: at the end nothing is left to fail */
    clearerr(stdout);
    return failure;
}

static void write_integer(gbx_json_writer *json, uint32_t dtype, uint64_t bits) {
    unsigned above = 64 - gbx_dtype_bits(dtype);
    int64_t value = gbx_dtype_is_signed(dtype) ? (int64_t)(bits << above) >> above
                                               : (int64_t)(bits << above >> above);
    if (above > 0)
        gbx_json_i64(json, value);
    else if (gbx_dtype_is_signed(dtype))
        gbx_json_i64_text(json, value);
    else
        gbx_json_u64_text(json, bits);
}

void gbx_json_value(gbx_json_writer *json, uint32_t dtype, uint64_t bits) {
    if (dtype == GBX_BOOL)
        gbx_json_bool(json, (bits & 0xff) != 0);
    else if (dtype == GBX_FLOAT64)
        gbx_json_f64(json, gbx_f64_of_bits(bits));
    else if (gbx_dtype_is_float(dtype))
        gbx_json_f32(json, (float)gbx_dtype_to_f64(dtype, bits));
    else
        write_integer(json, dtype, bits);
}

void gbx_json_put_value(gbx_json_writer *json, const char *key, uint32_t dtype, uint64_t bits) {
    gbx_json_key(json, key);
    gbx_json_value(json, dtype, bits);
}
