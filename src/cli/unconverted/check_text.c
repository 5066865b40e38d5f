#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/array_text.h"
#include "cli/internal.h"

enum { ARGUMENT_BYTES = 1024 };

/* --- words --- */

const char *gbx_check_kernel_text(const gbx_check_report *report, const gbx_check_line *line,
                                  char *out_text) {
    gbx_record_task task = {0};
    memcpy(task.func_ids, line->func_ids, sizeof task.func_ids);
    gbx_view_kernel_text(report->reader, &task, out_text);
    return out_text;
}

const char *gbx_check_task_text(const gbx_check_report *report, const gbx_check_line *line,
                                char out_text[GBX_CHECK_TASK_BYTES]) {
    bool has_number = gbx_reader_get_origin(report->reader)->known & GBX_KNOWN_TASK_SEQ;
    if (has_number)
        snprintf(out_text, GBX_CHECK_TASK_BYTES, "%" PRIu64, line->task);
    else
        snprintf(out_text, GBX_CHECK_TASK_BYTES, "0x%" PRIx64, line->task_id);
    return out_text;
}

/* "[2, 3]" of the worst element; "" of a tensor without dimensions. */
static const char *index_text(const gbx_check_output *output,
                              char out_text[GBX_NUMBERS_TEXT_BYTES]) {
    gbx_text_index(&output->tensor, output->comparison.worst.index, out_text);
    return output->tensor.ndims > 0 ? out_text : "";
}

/* "kernel add", "kernels multiply+finish" */
static void put_kernel(const gbx_check_report *report, const gbx_check_line *line) {
    char text[GBX_VIEW_KERNEL_BYTES];
    size_t kernels = 0;
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        kernels += line->func_ids[i] != GBX_NO_KERNEL;
    printf("kernel%s ", kernels > 1 ? "s" : "");
    gbx_terminal_put(gbx_check_kernel_text(report, line, text));
}

/* --- the first lines --- */

static void print_first(const gbx_check_report *report, const gbx_check_line *line,
                        const char *replay) {
    const gbx_check_output *output = &line->outputs[line->worst_output];
    const gbx_comparison *c = &output->comparison;
    char number[GBX_CHECK_TASK_BYTES], index[GBX_NUMBERS_TEXT_BYTES];
    char got[GBX_ELEMENT_TEXT_BYTES], want[GBX_ELEMENT_TEXT_BYTES];
    char wrong[GBX_COUNT_TEXT_BYTES], all[GBX_COUNT_TEXT_BYTES];
    printf("task %s, ", gbx_check_task_text(report, line, number));
    put_kernel(report, line);
    printf(", is the first that is wrong for its own inputs: ");
    gbx_element_format(output->tensor.dtype, c->worst.got_bits, got);
    gbx_element_format(output->tensor.dtype, c->worst.want_bits, want);
    if (output->name)
        gbx_terminal_put(output->name);
    else
        printf("argument %" PRIu32, output->slot);
    printf("%s is %s, expected %s (rtol %g, atol %g)", index_text(output, index), got, want,
           c->tolerance.rtol, c->tolerance.atol);
    printf("; %s of %s element%s %s wrong", gbx_text_count(c->mismatches, wrong),
           gbx_text_count(c->elements, all), gbx_text_plural(c->elements),
           c->mismatches == 1 ? "is" : "are");
    if (line->wrong_outputs > 1)
        printf(", and some of %" PRIu32 " more output%s", line->wrong_outputs - 1,
               gbx_text_plural(line->wrong_outputs - 1));
    gbx_terminal_quote("\n", replay, "\n");
}

static bool has_failed(const gbx_reader *reader) {
    return gbx_reader_end(reader) && !gbx_reader_has_ended_well(reader);
}

/* Of tasks that are right, what references do not write; and that there may be more tasks. */
static void print_not_compared(const gbx_check_report *report) {
    char text[GBX_COUNT_TEXT_BYTES];
    uint64_t count = 0;
    for (uint64_t i = 0; i < report->count; ++i)
        if (report->lines[i].verdict == GBX_CHECK_RIGHT)
            count += report->lines[i].not_written;
    if (count > 0)
        printf("; %s element%s of them %s not compared", gbx_text_count(count, text),
               gbx_text_plural(count), count == 1 ? "was" : "were");
    if (!gbx_reader_is_complete(report->reader))
        printf("; the dump is not complete");
    else if (has_failed(report->reader))
        printf("; the run failed");
    putchar('\n');
}

/* Where no task is wrong. */
static void print_verdict(const gbx_check_report *report) {
    const char *chosen = report->left_out > 0 ? "chosen " : "";
    uint64_t right = report->verdicts[GBX_CHECK_RIGHT];
    uint64_t unchecked = report->verdicts[GBX_CHECK_NOT_CHECKED];
    char rights[GBX_COUNT_TEXT_BYTES], all[GBX_COUNT_TEXT_BYTES], rest[GBX_COUNT_TEXT_BYTES];
    gbx_text_count(report->count, all);
    if (report->count == 0) {
        printf("nothing was checked: the dump has no tasks\n");
        return;
    }
    if (right == 0) {
        printf("nothing was checked: %s %stask%s, and none could be compared with a reference\n",
               all, chosen, gbx_text_plural(report->count));
        return;
    }
    if (unchecked > 0)
        printf("%s of %s %stasks %s own inputs, %s %s not checked", gbx_text_count(right, rights),
               all, chosen, right == 1 ? "is right for its" : "are right for their",
               gbx_text_count(unchecked, rest), unchecked == 1 ? "was" : "were");
    else if (report->count == 1)
        printf("the one %stask is right for its own inputs", chosen);
    else
        printf("all %s %stasks are right for their own inputs", all, chosen);
    print_not_compared(report);
}

/* --- tables --- */

static gbx_status add_introduced(const gbx_check_report *report, const gbx_check_line *line,
                                 gbx_text_table *table) {
    const gbx_check_output *output = &line->outputs[line->worst_output];
    const gbx_comparison *c = &output->comparison;
    char number[GBX_CHECK_TASK_BYTES], kernel[GBX_VIEW_KERNEL_BYTES], argument[ARGUMENT_BYTES];
    char counts[2][GBX_COUNT_TEXT_BYTES], wrong[2 * GBX_COUNT_TEXT_BYTES + 8];
    char index[GBX_NUMBERS_TEXT_BYTES], got[GBX_ELEMENT_TEXT_BYTES], want[GBX_ELEMENT_TEXT_BYTES];
    char more[32] = "";
    if (line->wrong_outputs > 1)
        snprintf(more, sizeof more, " +%" PRIu32, line->wrong_outputs - 1);
    snprintf(argument, sizeof argument, "%" PRIu32 " %s%s", output->slot,
             output->name ? output->name : "", more);
    snprintf(wrong, sizeof wrong, "%s of %s", gbx_text_count(c->mismatches, counts[0]),
             gbx_text_count(c->elements, counts[1]));
    gbx_element_format(output->tensor.dtype, c->worst.got_bits, got);
    gbx_element_format(output->tensor.dtype, c->worst.want_bits, want);
    const char *cells[] = {gbx_check_task_text(report, line, number),
                           gbx_check_kernel_text(report, line, kernel),
                           argument,
                           wrong,
                           index_text(output, index),
                           want,
                           got};
    return gbx_text_table_add(table, cells);
}

static gbx_status print_introduced(const gbx_check_report *report) {
    static const gbx_text_table_column columns[] = {
        {"TASK", true, 0, 0},  {"KERNEL", false, 8, 0}, {"ARG", false, 6, 3},
        {"WRONG", true, 0, 1}, {"WORST", false, 8, 2},  {"EXPECTED", false, 0, 0},
        {"GOT", false, 0, 0}};
    gbx_text_table table = {
        .columns = columns, .column_count = sizeof columns / sizeof columns[0], .gap = 2};
    char text[GBX_COUNT_TEXT_BYTES];
    gbx_status status = NULL;
    size_t shown = 0;
    for (uint64_t i = 0; i < report->count && shown < GBX_CHECK_LINES_MAX && !status; ++i) {
        if (report->lines[i].verdict != GBX_CHECK_INTRODUCED)
            continue;
        status = add_introduced(report, &report->lines[i], &table);
        ++shown;
    }
    GBX_TRY(gbx_text_table_finish(&table, status));
    if (report->verdicts[GBX_CHECK_INTRODUCED] > GBX_CHECK_LINES_MAX)
        printf("and %s more; --json lists all\n",
               gbx_text_count(report->verdicts[GBX_CHECK_INTRODUCED] - GBX_CHECK_LINES_MAX, text));
    return NULL;
}

static gbx_status add_kernel(const gbx_check_report *report, const gbx_check_kernel *kernel,
                             gbx_text_table *table) {
    char name[GBX_VIEW_KERNEL_BYTES], counts[3][GBX_COUNT_TEXT_BYTES];
    char max_abs[GBX_VIEW_NUMBER_BYTES], max_rel[GBX_VIEW_NUMBER_BYTES];
    bool is_compared = kernel->verdicts[GBX_CHECK_NOT_CHECKED] < kernel->tasks;
    gbx_view_mean_text(kernel->max_abs, max_abs);
    gbx_view_mean_text(kernel->max_rel, max_rel);
    const char *cells[] = {gbx_check_kernel_text(report, kernel->first, name),
                           gbx_text_count(kernel->tasks, counts[0]),
                           gbx_text_count(kernel->verdicts[GBX_CHECK_INTRODUCED], counts[1]),
                           gbx_text_count(kernel->verdicts[GBX_CHECK_NOT_CHECKED], counts[2]),
                           is_compared ? max_abs : "-",
                           is_compared ? max_rel : "-"};
    return gbx_text_table_add(table, cells);
}

static gbx_status print_kernels(const gbx_check_report *report, const gbx_check_kernel *kernels,
                                size_t count) {
    static const gbx_text_table_column columns[] = {
        {"KERNEL", false, 8, 0},     {"TASKS", true, 0, 0},   {"WRONG", true, 0, 0},
        {"NOT CHECKED", true, 0, 0}, {"MAX ABS", true, 0, 2}, {"MAX REL", true, 0, 1}};
    gbx_text_table table = {
        .columns = columns, .column_count = sizeof columns / sizeof columns[0], .gap = 2};
    gbx_status status = NULL;
    for (size_t i = 0; i < count && !status; ++i)
        status = add_kernel(report, &kernels[i], &table);
    return gbx_text_table_finish(&table, status);
}

/* --- what was not compared --- */

static gbx_status print_unchecked(const gbx_check_report *report) {
    gbx_check_unchecked *groups;
    size_t count;
    char text[GBX_COUNT_TEXT_BYTES], task[GBX_CHECK_TASK_BYTES];
    GBX_TRY(gbx_check_report_unchecked(report, &groups, &count));
    for (size_t i = 0; i < count && i < GBX_CHECK_LINES_MAX; ++i) {
        printf("not checked: %s task%s of ", gbx_text_count(groups[i].tasks, text),
               gbx_text_plural(groups[i].tasks));
        put_kernel(report, groups[i].examples[0]);
        printf(" (task%s ", gbx_text_plural(groups[i].tasks));
        for (uint64_t e = 0; e < groups[i].tasks && e < GBX_CHECK_EXAMPLES; ++e)
            printf("%s%s", e > 0 ? ", " : "",
                   gbx_check_task_text(report, groups[i].examples[e], task));
        if (groups[i].tasks > GBX_CHECK_EXAMPLES)
            printf(" and %s more", gbx_text_count(groups[i].tasks - GBX_CHECK_EXAMPLES, text));
        gbx_terminal_quote("): ", groups[i].examples[0]->reason, "\n");
    }
    if (count > GBX_CHECK_LINES_MAX)
        printf("not checked: for %s more reasons; --json lists all\n",
               gbx_text_count(count - GBX_CHECK_LINES_MAX, text));
    free(groups);
    return NULL;
}

/* What references leave alone. */
static void print_not_written(const gbx_check_report *report, const gbx_check_kernel *kernel) {
    char count[GBX_COUNT_TEXT_BYTES], tasks[GBX_COUNT_TEXT_BYTES], task[GBX_CHECK_TASK_BYTES];
    if (kernel->not_written == 0)
        return;
    printf("not compared: %s element%s of %s task%s of ",
           gbx_text_count(kernel->not_written, count), gbx_text_plural(kernel->not_written),
           gbx_text_count(kernel->not_written_tasks, tasks),
           gbx_text_plural(kernel->not_written_tasks));
    put_kernel(report, kernel->first);
    printf(" that the reference does not write, first in task %s\n",
           gbx_check_task_text(report, kernel->first_not_written, task));
}

/* What they should leave alone. */
static void print_stray(const gbx_check_report *report, const gbx_check_kernel *kernel) {
    char count[GBX_COUNT_TEXT_BYTES], tasks[GBX_COUNT_TEXT_BYTES], task[GBX_CHECK_TASK_BYTES];
    if (kernel->stray_tasks > 0) {
        printf("beware: the reference of ");
        put_kernel(report, kernel->first);
        printf(" writes outside of its outputs in %s task%s, first %s byte%s from 0x%" PRIx64
               " on in task %s\n",
               gbx_text_count(kernel->stray_tasks, tasks), gbx_text_plural(kernel->stray_tasks),
               gbx_text_count(kernel->first_stray->stray_bytes, count),
               gbx_text_plural(kernel->first_stray->stray_bytes),
               kernel->first_stray->stray_address,
               gbx_check_task_text(report, kernel->first_stray, task));
    }
    if (kernel->stray_unknown_tasks > 0) {
        printf("not looked at: what the reference of ");
        put_kernel(report, kernel->first);
        printf(" writes outside of its outputs in %s task%s with large tensors\n",
               gbx_text_count(kernel->stray_unknown_tasks, tasks),
               gbx_text_plural(kernel->stray_unknown_tasks));
    }
}

/* What the dump itself does not have, or the order of its tasks. */
static void print_dump_state(const gbx_check_report *report) {
    const gbx_reader *reader = report->reader;
    const char *level = gbx_reader_run(reader)->dump_level;
    char text[GBX_COUNT_TEXT_BYTES];
    uint64_t dropped = gbx_reader_get_totals(reader)->dropped;
    uint64_t missing = 0;
    for (uint64_t i = 0; i < report->count; ++i)
        if (report->lines[i].verdict == GBX_CHECK_INTRODUCED)
            missing += report->lines[i].missing_outputs;
    if (missing > 0)
        printf("not compared: %s output%s of wrong tasks that the dump does not hold\n",
               gbx_text_count(missing, text), gbx_text_plural(missing));
    if (report->verdicts[GBX_CHECK_NOT_CHECKED] > 0 && level && strcmp(level, "full") != 0) {
        gbx_terminal_quote("the dump's level is ", level,
                           ": glassbox run --dump-tensor=full records what all tasks need\n");
    }
    if (dropped > 0)
        printf("%s record%s of the run %s lost: there may be tasks that the dump does not have\n",
               gbx_text_count(dropped, text), gbx_text_plural(dropped),
               dropped == 1 ? "was" : "were");
    if (has_failed(reader))
        gbx_terminal_quote("the run failed: ", gbx_reader_end_text(reader), "\n");
    else if (!gbx_reader_end(reader))
        printf("the run was killed: there may be tasks that the dump does not have\n");
    if (!gbx_reader_get_origin(reader)->is_journal)
        printf("no journal: tasks come in the order of submission, for the graph is not known\n");
    if (report->bad_edges > 0)
        printf("%s edge%s of the graph %s no sense: glassbox verify tells more\n",
               gbx_text_count(report->bad_edges, text), gbx_text_plural(report->bad_edges),
               report->bad_edges == 1 ? "makes" : "make");
}

/* --- all of it --- */

gbx_status gbx_check_print_text(const gbx_check_report *report, const char *replay) {
    const gbx_check_line *first = gbx_check_report_first(report);
    const uint64_t *verdicts = report->verdicts;
    char text[GBX_COUNT_TEXT_BYTES];
    if (first)
        print_first(report, first, replay);
    else
        print_verdict(report);
    /* "250 checked: 6 introduced, 244 right; 6 not checked" */
    printf("%s checked: ", gbx_text_count(report->count - verdicts[GBX_CHECK_NOT_CHECKED], text));
    printf("%s introduced, ", gbx_text_count(verdicts[GBX_CHECK_INTRODUCED], text));
    printf("%s right; ", gbx_text_count(verdicts[GBX_CHECK_RIGHT], text));
    printf("%s not checked", gbx_text_count(verdicts[GBX_CHECK_NOT_CHECKED], text));
    if (report->left_out > 0)
        printf("; %s left out by --kernel and --task", gbx_text_count(report->left_out, text));
    putchar('\n');
    if (first) {
        putchar('\n');
        GBX_TRY(print_introduced(report));
    }
    if (report->count > 0) {
        gbx_check_kernel *kernels;
        size_t count;
        putchar('\n');
        GBX_TRY(gbx_check_report_kernels(report, &kernels, &count));
        gbx_status status = print_kernels(report, kernels, count);
        if (!status)
            status = print_unchecked(report);
        for (size_t i = 0; i < count && !status; ++i) {
            print_not_written(report, &kernels[i]);
            print_stray(report, &kernels[i]);
        }
        free(kernels);
        GBX_TRY(status);
    }
    print_dump_state(report);
    return NULL;
}
