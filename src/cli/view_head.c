#include "cli/view_head.h"

#include <stdio.h>

#include "cli/dump_text.h"
#include "cli/terminal.h"

#define RED "\x1b[31m"
#define YELLOW "\x1b[33m"
#define PLAIN "\x1b[0m"

/* "vector_example default, a2a3sim, tensormap_and_ringbuffer, full"; of another tool's dump its
 * place. */
static void print_run(const gbx_opened_dump *dump) {
    const gbx_run_info *run = gbx_reader_run(dump->reader);
    const char *const parts[] = {run->platform, run->runtime, run->dump_level};
    gbx_terminal_put(run->scene ? run->scene : dump->directory);
    if (run->scene && run->case_name) {
        putchar(' ');
        gbx_terminal_put(run->case_name);
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i) {
        if (!parts[i])
            continue;
        printf(", ");
        gbx_terminal_put(parts[i]);
    }
}

static void print_totals(const gbx_reader *reader) {
    const gbx_reader_totals *totals = gbx_reader_get_totals(reader);
    char text[GBX_COUNT_TEXT_BYTES];
    uint64_t records = totals->records + totals->in_flight;
    printf(": %s record%s", gbx_text_count(records, text), records == 1 ? "" : "s");
    printf(" of %s task%s", gbx_text_count(totals->tasks, text), totals->tasks == 1 ? "" : "s");
    printf(", %s", gbx_text_bytes(totals->payload_bytes, text));
    if (totals->stored_bytes != totals->payload_bytes)
        printf(" (%s stored)", gbx_text_bytes(totals->stored_bytes, text));
}

static void print_count(const char *what, uint64_t count, const char *colour, bool is_coloured) {
    char text[GBX_COUNT_TEXT_BYTES];
    bool is_shown = count > 0 && is_coloured;
    printf("; %s%s %s%s", is_shown ? colour : "", gbx_text_count(count, text), what,
           is_shown ? PLAIN : "");
}

static void print_status(const gbx_reader *reader, bool is_coloured) {
    const char *status = gbx_reader_end(reader) ? gbx_reader_end_text(reader) : "killed";
    bool is_complete = gbx_reader_is_complete(reader);
    bool is_told = gbx_reader_get_origin(reader)->told & GBX_TOLD_STATUS;
    if (!is_told || (is_complete && gbx_reader_has_ended_well(reader)))
        return;
    printf("; %s%s", is_coloured ? RED : "", is_complete ? "" : "not complete: ");
    gbx_terminal_put(status);
    printf("%s", is_coloured ? PLAIN : "");
}

void gbx_view_head_print(const gbx_opened_dump *dump) {
    const gbx_reader_totals *totals = gbx_reader_get_totals(dump->reader);
    bool is_coloured = gbx_terminal_has_colour();
    print_run(dump);
    print_totals(dump->reader);
    print_count("lost", totals->dropped, RED, is_coloured);
    print_count("skipped", totals->skipped, YELLOW, is_coloured);
    if (totals->truncated > 0)
        print_count("truncated", totals->truncated, YELLOW, is_coloured);
    if (totals->in_flight > 0)
        print_count("in flight", totals->in_flight, RED, is_coloured);
    print_status(dump->reader, is_coloured);
    putchar('\n');
}
