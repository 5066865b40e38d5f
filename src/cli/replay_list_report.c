/* What a replay of several tasks found: one line each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/dump_text.h"
#include "cli/replay_report.h"
#include "cli/replay_text.h"
#include "cli/terminal.h"
#include "cli/text_table.h"

enum { NOTE_BYTES = 512, CELL_BYTES = 32 };

static const gbx_text_table_column task_columns[] = {
    {"TASK", true, 0, 0},        {"KERNEL", false, 6, 0},  {"OUTPUTS", true, 0, 2},
    {"ELEMENTS", true, 0, 3},    {"VERDICT", false, 0, 0}, {"MISMATCHES", true, 0, 5},
    {"NOT WRITTEN", true, 0, 4}, {"TIME", true, 0, 1},     {"NOTE", false, 6, 0}};
enum { TASK_COLUMNS = sizeof task_columns / sizeof task_columns[0] };

/* The line says which task it is. */
static const char *refusal_reason(const char *refusal) {
    static const char title[] = "replaying task ",
                      mark[] = "not all that it needs is in the dump: ";
    if (!refusal)
        return "the host is out of memory";
    const char *place = strstr(refusal, mark);
    if (place)
        return place + sizeof mark - 1;
    place = strncmp(refusal, title, sizeof title - 1) == 0 ? strstr(refusal, ": ") : NULL;
    return place ? place + 2 : refusal;
}

static const char *row_note(const gbx_replay_result *result, const gbx_replay_sums *sums,
                            char out_text[NOTE_BYTES]) {
    if (result->verdict == GBX_REPLAY_REFUSED)
        return refusal_reason(result->refusal);
    if (result->verdict == GBX_REPLAY_FAULT)
        return result->outcome.fault.text;
    if (result->outcome.stray_bytes > 0)
        snprintf(out_text, NOTE_BYTES, "changed %" PRIu64 " byte%s outside of its outputs",
                 result->outcome.stray_bytes, gbx_text_plural(result->outcome.stray_bytes));
    else if (result->verdict != GBX_REPLAY_NOT_COMPARED && sums->not_compared > 0)
        snprintf(out_text, NOTE_BYTES, "%" PRIu64 " output%s not compared", sums->not_compared,
                 gbx_text_plural(sums->not_compared));
    else
        snprintf(out_text, NOTE_BYTES, "%s",
                 sums->unstable > 0            ? "reads its output, or is not deterministic"
                 : result->times.different > 0 ? "not the same in all runs"
                 : sums->unchanged > 0         ? "holds what it held before"
                                               : "");
    return out_text;
}

static gbx_status add_task(gbx_text_table *table, const gbx_replay_result *result) {
    gbx_replay_sums sums = gbx_replay_result_sums(result);
    char task[CELL_BYTES], outputs[CELL_BYTES], note[NOTE_BYTES];
    char elements[GBX_COUNT_TEXT_BYTES], mismatches[GBX_COUNT_TEXT_BYTES];
    char rest[GBX_COUNT_TEXT_BYTES], time[GBX_TIME_TEXT_BYTES];
    bool has_run = result->verdict != GBX_REPLAY_REFUSED && result->verdict != GBX_REPLAY_FAULT;
    snprintf(task, sizeof task, "%" PRIu64, result->task);
    snprintf(outputs, sizeof outputs, "%" PRIu64, sums.outputs);
    const char *cells[TASK_COLUMNS] = {
        task,
        result->kernel,
        has_run ? outputs : "",
        has_run ? gbx_text_count(sums.elements, elements) : "",
        gbx_replay_verdict_text(result->verdict),
        sums.mismatches ? gbx_text_count(sums.mismatches, mismatches) : "",
        sums.not_written ? gbx_text_count(sums.not_written, rest) : "",
        has_run ? gbx_text_ns(result->times.median_ns, time) : "",
        row_note(result, &sums, note)};
    return gbx_text_table_add(table, cells);
}

/* What the first line names the first task with; NULL for nothing. */
static const char *trouble(const gbx_replay_result *result) {
    if (result->verdict == GBX_REPLAY_FAULT)
        return "fails";
    if (result->verdict == GBX_REPLAY_DIFFERS)
        return "differs";
    return result->times.different > 0 ? "is not the same in all runs" : NULL;
}

/* The table may be long: the first line says where to look. */
static void put_first(const gbx_replay_result *results, size_t count) {
    const gbx_replay_result *refused = NULL;
    for (size_t i = 0; i < count; ++i) {
        if (results[i].verdict == GBX_REPLAY_REFUSED && !refused)
            refused = &results[i];
        if (trouble(&results[i])) {
            printf("; the first that %s is task %" PRIu64, trouble(&results[i]), results[i].task);
            return;
        }
    }
    if (refused) {
        printf("; the first that is not replayed is task %" PRIu64 ": ", refused->task);
        gbx_terminal_put(refusal_reason(refused->refusal));
    }
}

static void print_counts(const gbx_replay_result *results, size_t count) {
    uint64_t counts[GBX_REPLAY_VERDICT_COUNT] = {0};
    char text[GBX_COUNT_TEXT_BYTES];
    const char *comma = "";
    for (size_t i = 0; i < count; ++i)
        counts[results[i].verdict]++;
    printf("%s task%s: ", gbx_text_count(count, text), gbx_text_plural(count));
    for (gbx_replay_verdict verdict = 0; verdict < GBX_REPLAY_VERDICT_COUNT; ++verdict) {
        if (counts[verdict] == 0)
            continue;
        printf("%s%s ", comma,
               counts[verdict] == count ? "all" : gbx_text_count(counts[verdict], text));
        gbx_replay_put_word(verdict, gbx_replay_verdict_text(verdict));
        comma = ", ";
    }
    put_first(results, count);
    putchar('\n');
}

gbx_status gbx_replay_report_print_all(const gbx_replay_result *results, size_t count,
                                       const char *run_end) {
    gbx_text_table table = {.columns = task_columns, .column_count = TASK_COLUMNS, .gap = 1};
    gbx_status status = NULL;
    print_counts(results, count);
    for (size_t i = 0; i < count && !status; ++i)
        status = add_task(&table, &results[i]);
    GBX_TRY(gbx_text_table_finish(&table, status));
    if (run_end[0]) {
        printf("the recorded run ended with: ");
        gbx_terminal_put(run_end);
        putchar('\n');
    }
    return NULL;
}
