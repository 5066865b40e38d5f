/* Lines of watch.c as reports. */
#include <stdlib.h>
#include <string.h>

#include "replay/sanitize/internal.h"
#include "replay/sanitize/plan.h"

/* " SUBTASK+OFFSET ..." */
static void read_places(const char *text, gbx_raw_report *report) {
    for (char *end; *text == ' ' && report->place_count < GBX_RAW_PLACES; text = end) {
        gbx_raw_place *place = &report->places[report->place_count];
        place->subtask = (uint32_t)strtoul(text, &end, 10);
        if (*end != '+' || place->subtask >= GBX_SUBTASK_COUNT)
            return;
        place->offset = strtoull(end + 1, &end, 16);
        report->place_count++;
    }
}

/* Whether the word at the beginning of a text is this one. */
static bool begins_with(const char *text, const char *word) {
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && text[length] == ' ';
}

void gbx_sanitize_read_access(const char *text, gbx_raw_report *report) {
    char *end;
    const bool is_read = begins_with(text, GBX_PLAN_READS);
    const bool is_of_input = begins_with(text, GBX_PLAN_WRITES_INPUT);
    report->kind = is_read       ? GBX_SANITIZE_READ_OUTSIDE
                   : is_of_input ? GBX_SANITIZE_WRITES_INPUT
                                 : GBX_SANITIZE_WRITE_OUTSIDE;
    report->is_watched = true;
    report->is_write = !is_read;
    report->has_address = true;
    report->address = strtoull(text + strcspn(text, " \n"), &end, 16);
    uint64_t bytes = strtoull(end, &end, 10);
    report->bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    report->slot = (uint32_t)strtoul(end, &end, 10);
    report->parties[0] = (uint32_t)strtoul(end, &end, 10);
    read_places(end, report);
}

void gbx_sanitize_read_times(const char *text, gbx_raw_reports *reports) {
    char *end;
    uint64_t number = strtoull(text, &end, 10);
    for (size_t i = 0; i < reports->count; ++i)
        if (reports->items[i].is_watched && number-- == 0)
            reports->items[i].count = strtoull(end, NULL, 10);
}

void gbx_sanitize_read_crash(const char *text, gbx_raw_report *report) {
    char *end;
    size_t length = strcspn(text, " \n");
    if (length < sizeof report->what) {
        memcpy(report->what, text, length);
        report->what[length] = '\0';
    }
    report->address = strtoull(text + length, &end, 16);
    report->has_address = strtoul(end, &end, 10) == 1;
    report->parties[0] = (uint32_t)strtoul(end, &end, 10);
    read_places(end, report);
}
