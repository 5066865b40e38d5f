#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>

#include "analysis/array_text.h"
#include "base/float_bits.h"
#include "cli/internal.h"
#include "store/manifest/manifest_text.h"

enum { LINES_MAX = 20 };

const char *gbx_text_count(uint64_t count, char out_text[GBX_COUNT_TEXT_BYTES]) {
    char digits[GBX_COUNT_TEXT_BYTES];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t used = 0;
    for (int i = 0; i < length; ++i) {
        if (i > 0 && (length - i) % 3 == 0)
            out_text[used++] = ',';
        out_text[used++] = digits[i];
    }
    out_text[used] = '\0';
    return out_text;
}

const char *gbx_text_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

const char *gbx_text_bytes(uint64_t bytes, char out_text[GBX_COUNT_TEXT_BYTES]) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(out_text, GBX_COUNT_TEXT_BYTES, "%" PRIu64 " byte%s", bytes,
                 gbx_text_plural(bytes));
        return out_text;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    for (; value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]; ++unit)
        value /= 1024;
    snprintf(out_text, GBX_COUNT_TEXT_BYTES, "%.1f %s", value, units[unit]);
    return out_text;
}

const char *gbx_text_numbers(const int64_t *numbers, uint32_t count,
                             char out_text[GBX_NUMBERS_TEXT_BYTES]) {
    char *at = out_text;
    *at++ = '[';
    for (uint32_t i = 0; i < count; ++i) {
        if (i > 0)
            at = GBX_PUT(at, ", ");
        at = gbx_put_i64(at, numbers[i]);
    }
    *at++ = ']';
    *at = '\0';
    return out_text;
}

const char *gbx_text_index(const gbx_tensor *tensor, uint64_t number,
                           char out_text[GBX_NUMBERS_TEXT_BYTES]) {
    int64_t index[GBX_MAX_DIMS];
    gbx_compare_index(tensor, number, index);
    return gbx_text_numbers(index, tensor->ndims, out_text);
}

const char *gbx_text_value(uint32_t dtype, uint64_t bits, char out_text[GBX_TEXT_VALUE_BYTES]) {
    char value[GBX_ELEMENT_TEXT_BYTES];
    gbx_element_format(dtype, bits, value);
    int digits = (int)(gbx_dtype_bits(dtype) + 3) / 4;
    bool has_twins = gbx_dtype_is_float(dtype) && isnan(gbx_dtype_to_f64(dtype, bits));
    if (has_twins || (dtype == GBX_BOOL && bits > 1))
        snprintf(out_text, GBX_TEXT_VALUE_BYTES, "%s (0x%0*" PRIx64 ")", value, digits, bits);
    else
        snprintf(out_text, GBX_TEXT_VALUE_BYTES, "%s", value);
    return out_text;
}

/* Three digits are shown: what rounds to 1000 of a unit is 1 of the next. */
const char *gbx_text_ns(uint64_t ns, char out_text[GBX_TIME_TEXT_BYTES]) {
    double value = (double)ns;
    if (ns < 1000)
        snprintf(out_text, GBX_TIME_TEXT_BYTES, "%" PRIu64 " ns", ns);
    else if (value < 999.5e3)
        snprintf(out_text, GBX_TIME_TEXT_BYTES, "%.3g us", value / 1e3);
    else if (value < 999.5e6)
        snprintf(out_text, GBX_TIME_TEXT_BYTES, "%.3g ms", value / 1e6);
    else
        snprintf(out_text, GBX_TIME_TEXT_BYTES, "%.2f s", value / 1e9);
    return out_text;
}

static void print_finding(const gbx_finding *finding) {
    if (finding->has_place) {
        printf("  record %" PRIu64 ": task %" PRIu64, finding->place.index, finding->place.task);
        gbx_terminal_quote(", kernel ", finding->kernel ? finding->kernel : "unknown", "");
        printf(", arg %u, %s: ", finding->place.arg_index,
               gbx_name_of(&gbx_stages, finding->place.stage));
    } else {
        printf("  %s: ", gbx_finding_kind_name(finding->kind));
    }
    gbx_terminal_put(finding->what);
    if (finding->expected) {
        gbx_terminal_quote(": expected ", finding->expected, ", got ");
        gbx_terminal_put(finding->got);
    }
    putchar('\n');
}

void gbx_text_findings(const gbx_findings *findings, const char *more) {
    char count[GBX_COUNT_TEXT_BYTES];
    for (size_t i = 0; i < findings->count && i < LINES_MAX; ++i)
        print_finding(&findings->items[i]);
    if (findings->count > LINES_MAX)
        printf("  and %s more%s\n", gbx_text_count(findings->count - LINES_MAX, count), more);
}

/* --- JSON --- */

static gbx_status write_to_stdout(void *context, const void *bytes, size_t size) {
    (void)context;
    if (fwrite(bytes, 1, size, stdout) == size && fflush(stdout) == 0)
        return NULL;
    gbx_status failure = gbx_fail(GBX_IO, "writing to stdout: %s", strerror(errno));
    __fpurge(stdout); /* told once: at the end nothing is left to fail */
    clearerr(stdout);
    return failure;
}

void gbx_json_start_stdout(gbx_json_writer *json) {
    gbx_json_start(json, write_to_stdout, NULL, GBX_JSON_PRETTY);
    gbx_json_begin_object(json);
}

gbx_status gbx_json_finish_stdout(gbx_json_writer *json, gbx_status status) {
    if (!status)
        gbx_json_end_object(json);
    gbx_status finished = gbx_json_finish(json);
    return gbx_status_first(status, finished);
}

void gbx_json_put_value(gbx_json_writer *json, const char *key, uint32_t dtype, uint64_t bits) {
    unsigned above = 64 - gbx_dtype_bits(dtype);
    gbx_json_key(json, key);
    if (dtype == GBX_BOOL)
        gbx_json_bool(json, (bits & 0xff) != 0);
    else if (dtype == GBX_FLOAT64)
        gbx_json_f64(json, gbx_f64_of_bits(bits));
    else if (gbx_dtype_is_float(dtype))
        gbx_json_f32(json, (float)gbx_dtype_to_f64(dtype, bits));
    else if (above > 0)
        gbx_json_i64(json, gbx_dtype_is_signed(dtype) ? (int64_t)(bits << above) >> above
                                                      : (int64_t)(bits << above >> above));
    else if (gbx_dtype_is_signed(dtype))
        gbx_json_i64_text(json, (int64_t)bits);
    else
        gbx_json_u64_text(json, bits);
}

void gbx_json_put_numbers(gbx_json_writer *json, const char *key, const int64_t *numbers,
                          uint32_t count) {
    gbx_json_key(json, key);
    gbx_json_begin_array_inline(json);
    for (uint32_t i = 0; i < count; ++i)
        gbx_json_i64(json, numbers[i]);
    gbx_json_end_array(json);
}

void gbx_json_put_index(gbx_json_writer *json, const char *key, const gbx_tensor *tensor,
                        uint64_t number) {
    int64_t index[GBX_MAX_DIMS];
    gbx_compare_index(tensor, number, index);
    gbx_json_put_numbers(json, key, index, tensor->ndims);
}

void gbx_json_put_known(gbx_json_writer *json, const char *key, bool is_there, uint64_t value) {
    if (is_there)
        gbx_json_put_u64(json, key, value);
    else
        gbx_json_put_null(json, key);
}

void gbx_json_put_findings(gbx_json_writer *json, const char *key, const gbx_findings *findings) {
    gbx_json_key(json, key);
    gbx_json_begin_array(json);
    for (size_t i = 0; i < findings->count && !gbx_json_has_failed(json); ++i) {
        const gbx_finding *finding = &findings->items[i];
        const gbx_finding_place *place = &finding->place;
        gbx_json_begin_object_inline(json);
        gbx_json_put_string(json, "kind", gbx_finding_kind_name(finding->kind));
        gbx_json_put_known(json, "index", finding->has_place, place->index);
        gbx_json_put_known(json, "task_seq", finding->has_place, place->task);
        gbx_json_put_string(json, "kernel", finding->kernel);
        gbx_json_put_known(json, "arg_index", finding->has_place, place->arg_index);
        gbx_json_put_string(json, "stage",
                            finding->has_place ? gbx_name_of(&gbx_stages, place->stage) : NULL);
        gbx_json_put_string(json, "what", finding->what);
        gbx_json_put_string(json, "expected", finding->expected);
        gbx_json_put_string(json, "got", finding->got);
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
}
