#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/process.h"
#include "replay/sanitize/internal.h"

static const char doing[] = "finding lines";

/* The words of a command: the program, its options, the object, then an offset each. */
typedef struct question {
    char **words; /* last NULL */
    char (*offsets)[24];
} question;

enum { OPTION_WORDS = 7 };

static uint64_t count_places(const gbx_raw_reports *reports, uint32_t subtask) {
    uint64_t count = 0;
    for (size_t i = 0; i < reports->count; ++i)
        for (uint32_t k = 0; k < reports->items[i].place_count; ++k)
            count += reports->items[i].places[k].subtask == subtask;
    return count;
}

static void add_offsets(const gbx_raw_reports *reports, uint32_t subtask, question *q) {
    uint64_t count = 0;
    for (size_t i = 0; i < reports->count; ++i)
        for (uint32_t k = 0; k < reports->items[i].place_count; ++k) {
            const gbx_raw_place *place = &reports->items[i].places[k];
            if (place->subtask != subtask)
                continue;
            snprintf(q->offsets[count], sizeof q->offsets[0], "0x%" PRIx64, place->offset);
            q->words[OPTION_WORDS + count] = q->offsets[count];
            ++count;
        }
}

/* NULL: the program cannot be asked. */
static char *ask(const char *program, const char *style, const char *object, question *q) {
    const char *const options[OPTION_WORDS] = {program, "-a", "-f", "-i", style, "-e", object};
    gbx_process_result result;
    char *text = NULL;
    for (size_t i = 0; i < OPTION_WORDS; ++i)
        q->words[i] = (char *)(uintptr_t)options[i];
    gbx_status status = gbx_process_run(q->words, &result);
    if (!status && result.exit_code == 0) {
        text = result.out_text;
        result.out_text = NULL;
    }
    if (!status)
        gbx_process_result_free(&result);
    gbx_status_free(status);
    return text;
}

/* --- answers --- */

static const char *next_line(const char *text) {
    text += strcspn(text, "\n");
    return *text ? text + 1 : text;
}

/* "FUNCTION\nFILE:LINE ..." */
static void read_frame(const char *text, uint32_t subtask, gbx_sanitize_frame *frame) {
    const char *place = next_line(text);
    int end = (int)strcspn(place, "\n");
    *frame = (gbx_sanitize_frame){
        .function = text, .function_length = (int)strcspn(text, "\n"), .subtask = subtask};
    while (end > 0 && place[end - 1] != ':')
        --end;
    frame->line = end > 0 ? (uint32_t)strtoul(place + end, NULL, 10) : 0;
    if (frame->line == 0 || place[0] == '?')
        return;
    frame->file = place;
    frame->file_length = end - 1;
}

/* The kernel's own line is wanted; the first of all, if there is none. */
static void take(gbx_raw_report *report, const gbx_sanitize_frame *frame) {
    gbx_sanitize_frame *known = &report->frames[GBX_STACK_ACCESS];
    if (report->has_frame[GBX_STACK_ACCESS] &&
        (gbx_sanitize_is_own(known) || !gbx_sanitize_is_own(frame)))
        return;
    *known = *frame;
    report->has_frame[GBX_STACK_ACCESS] = true;
}

/* Each place is answered by a line with its offset, then two lines for each inlined function,
 * innermost first. */
static const char *take_place(gbx_raw_report *report, uint32_t subtask, const char *text) {
    for (text = next_line(text); *text && strncmp(text, "0x", 2) != 0;
         text = next_line(next_line(text))) {
        gbx_sanitize_frame frame;
        read_frame(text, subtask, &frame);
        take(report, &frame);
    }
    return text;
}

static void take_answer(gbx_raw_reports *reports, uint32_t subtask) {
    const char *text = reports->located[subtask];
    for (size_t i = 0; text && i < reports->count; ++i)
        for (uint32_t k = 0; k < reports->items[i].place_count; ++k)
            if (reports->items[i].places[k].subtask == subtask)
                text = take_place(&reports->items[i], subtask, text);
}

static gbx_status locate(const gbx_sanitize_built *built, uint32_t subtask,
                         gbx_raw_reports *reports) {
    const uint64_t count = count_places(reports, subtask);
    const char *object = built->objects[subtask];
    if (count == 0 || !object)
        return NULL;
    question q = {.words = calloc(OPTION_WORDS + count + 1, sizeof *q.words),
                  .offsets = calloc(count, sizeof *q.offsets)};
    if (!q.words || !q.offsets) {
        free(q.words);
        free(q.offsets);
        return gbx_fail_memory("%s", doing);
    }
    add_offsets(reports, subtask, &q);
    reports->located[subtask] = ask("addr2line", "-C", object, &q);
    if (!reports->located[subtask])
        reports->located[subtask] = ask(built->symbolizer ? built->symbolizer : "llvm-symbolizer",
                                        "--output-style=GNU", object, &q);
    take_answer(reports, subtask);
    free(q.words);
    free(q.offsets);
    return NULL;
}

gbx_status gbx_sanitize_locate(const gbx_sanitize_built *built, gbx_raw_reports *reports) {
    for (uint32_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        GBX_TRY(locate(built, i, reports));
    return NULL;
}
