#include "cli/dump_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/terminal.h"
#include "store/journal/format.h"
#include "text/names.h"

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
                 bytes == 1 ? "" : "s");
        return out_text;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    for (; value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]; ++unit)
        value /= 1024;
    snprintf(out_text, GBX_COUNT_TEXT_BYTES, "%.1f %s", value, units[unit]);
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

/* `quoted` is what the dump says, and may hold anything. */
static void print_quoted(const char *before, const char *quoted) {
    fputs(before, stdout);
    gbx_terminal_put(quoted);
}

static void print_finding(const gbx_finding *finding) {
    if (finding->has_place) {
        printf("  record %" PRIu64 ": task %" PRIu64, finding->place.index, finding->place.task);
        print_quoted(", kernel ", finding->kernel ? finding->kernel : "unknown");
        printf(", arg %u, %s: ", finding->place.arg_index,
               gbx_name_of(&gbx_stages, finding->place.stage));
    } else {
        printf("  %s: ", gbx_finding_kind_name(finding->kind));
    }
    print_quoted("", finding->what);
    if (finding->expected) {
        print_quoted(": expected ", finding->expected);
        print_quoted(", got ", finding->got);
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

static void write_number(gbx_json_writer *json, const char *key, bool is_there, uint64_t value) {
    gbx_json_key(json, key);
    if (is_there)
        gbx_json_u64(json, value);
    else
        gbx_json_null(json);
}

static void write_finding(gbx_json_writer *json, const gbx_finding *finding) {
    const gbx_finding_place *place = &finding->place;
    gbx_json_begin_object_inline(json);
    gbx_json_put_string(json, "kind", gbx_finding_kind_name(finding->kind));
    write_number(json, "index", finding->has_place, place->index);
    write_number(json, "task_seq", finding->has_place, place->task);
    gbx_json_put_string(json, "kernel", finding->kernel);
    write_number(json, "arg_index", finding->has_place, place->arg_index);
    gbx_json_put_string(json, "stage",
                        finding->has_place ? gbx_name_of(&gbx_stages, place->stage) : NULL);
    gbx_json_put_string(json, "what", finding->what);
    gbx_json_put_string(json, "expected", finding->expected);
    gbx_json_put_string(json, "got", finding->got);
    gbx_json_end_object(json);
}

void gbx_json_findings(gbx_json_writer *json, const gbx_findings *findings) {
    gbx_json_begin_array(json);
    for (size_t i = 0; i < findings->count && !gbx_json_has_failed(json); ++i)
        write_finding(json, &findings->items[i]);
    gbx_json_end_array(json);
}
