#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/reports.h"
#include "report/table.h"

static const gbx_name verdict_names[] = {[GBX_CHECK_RIGHT] = {.name = "right"},
                                         [GBX_CHECK_INTRODUCED] = {.name = "introduced"},
                                         [GBX_CHECK_NOT_CHECKED] = {.name = "not_checked"},
                                         [GBX_CHECK_OVERWRITTEN] = {.name = "overwritten"},
                                         [GBX_CHECK_NOT_REPEATED] = {.name = "not_repeated"}};
static const gbx_name_set verdict_set = {verdict_names, GBX_CHECK_VERDICT_COUNT};

typedef struct reporting {
    gbx_sink *sink;
    const gbx_opened_dump *dump;
    const char *given;
    const gbx_check_report *report;
    const gbx_check_group *kernels;
    size_t kernel_count;
} reporting;

/* --- names --- */

static const char *kernel_name(const reporting *r, const gbx_check_line *line) {
    gbx_record_task task = {0};
    memcpy(task.func_ids, line->func_ids, sizeof task.func_ids);
    return gbx_text_kernel(&r->sink->texts, r->report->reader, &task);
}

/* "kernel add", "kernels multiply+finish", safe to print */
static const char *kernel_text(const reporting *r, const gbx_check_line *line) {
    gbx_texts *t = &r->sink->texts;
    size_t kernels = 0;
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        kernels += line->func_ids[i] != GBX_NO_KERNEL;
    return gbx_text_format(t, "kernel%s %s", kernels > 1 ? "s" : "",
                           gbx_text_shown(t, kernel_name(r, line)));
}

static const char *task_text(const reporting *r, const gbx_check_line *line) {
    return gbx_text_task(&r->sink->texts, r->report->reader, line->task, line->task_id);
}

static const char *replay_text(const reporting *r, const gbx_check_line *line) {
    return gbx_text_replay(&r->sink->texts, r->dump, r->given, task_text(r, line));
}

/* "[2, 3]" of the worst element; "" of a tensor without dimensions. */
static const char *index_text(gbx_texts *t, const gbx_check_output *output) {
    return output->tensor.ndims > 0
               ? gbx_text_index(t, &output->tensor, output->comparison.worst.index)
               : "";
}

/* --- rows --- */

typedef struct kernel_row {
    gbx_check_group of;
    const char *name;
    bool is_compared; /* one of its tasks at least */
} kernel_row;

static const gbx_field kernel_fields[] = {
    GBX_FIELD(kernel_row, name, STRING, "kernel", "KERNEL", .narrowest = 8),
    GBX_FIELD(kernel_row, of.tasks, COUNT, "tasks", "TASKS"),
    GBX_FIELD(kernel_row, of.verdicts[GBX_CHECK_RIGHT], COUNT, "right", NULL),
    GBX_FIELD(kernel_row, of.verdicts[GBX_CHECK_INTRODUCED], COUNT, "introduced", "WRONG"),
    GBX_FIELD(kernel_row, of.verdicts[GBX_CHECK_NOT_CHECKED], COUNT, "not_checked", "NOT CHECKED"),
    GBX_FIELD(kernel_row, of.not_written, COUNT, "not_written", NULL),
    GBX_FIELD(kernel_row, of.stray_tasks, COUNT, "stray_tasks", NULL),
    GBX_FIELD(kernel_row, of.max_abs, F64, "max_abs", NULL),
    GBX_FIELD(kernel_row, of.max_rel, F64, "max_rel", NULL),
    GBX_FIELD_IF(kernel_row, is_compared, of.max_abs, F64, NULL, "MAX ABS", .absent = "-",
                 .leaves = 2),
    GBX_FIELD_IF(kernel_row, is_compared, of.max_rel, F64, NULL, "MAX REL", .absent = "-",
                 .leaves = 1)};

static gbx_status make_kernel(const void *context, uint64_t number, void *out_row) {
    const reporting *r = context;
    const gbx_check_group *kernel = &r->kernels[number];
    *(kernel_row *)out_row = (kernel_row){*kernel, kernel_name(r, kernel->examples[0]),
                                          kernel->verdicts[GBX_CHECK_NOT_CHECKED] < kernel->tasks};
    return NULL;
}

typedef struct task_row {
    gbx_check_line of;
    const char *kernel;
    bool is_stray_known;
    const char *replay; /* the verdict of a replay, or NULL */
} task_row;

enum { IDENTITY_FIELDS = 3, ARGUMENT_FIELDS = 2 }; /* that `first` has, too */

static const gbx_field task_fields[] = {
    GBX_FIELD(task_row, of.task, NUMBER, "task_seq", NULL),
    GBX_FIELD(task_row, of.task_id, HEX, "task_id", NULL),
    GBX_FIELD(task_row, kernel, STRING, "kernel", NULL),
    GBX_FIELD(task_row, of.verdict, NAME, "verdict", NULL, .names = &verdict_set),
    GBX_FIELD(task_row, of.reason, STRING, "reason", NULL),
    GBX_FIELD(task_row, of.missing_outputs, COUNT, "missing_outputs", NULL),
    GBX_FIELD_IF(task_row, is_stray_known, of.stray_bytes, COUNT, "stray_bytes", NULL),
    GBX_FIELD(task_row, replay, STRING, "replay", NULL),
    GBX_FIELD(task_row, of.kernels.why_not, STRING, "not_called", NULL)};

static task_row make_task(const reporting *r, const gbx_check_line *line) {
    const gbx_check_kernels *kernels = &line->kernels;
    return (task_row){*line, kernel_name(r, line), !line->stray_is_unknown,
                      kernels->is_called ? gbx_replay_verdict_name(kernels->verdict) : NULL};
}

#define OUTPUT(member, kind, key, ...)                                                             \
    GBX_FIELD(gbx_check_output, member, kind, key, NULL, __VA_ARGS__)
static const gbx_field worst_fields[] = {
    OUTPUT(comparison.worst.index, INDEX, "element", .with = offsetof(gbx_check_output, tensor)),
    OUTPUT(comparison.worst.want_bits, ELEMENT, "expected",
           .with = offsetof(gbx_check_output, tensor.dtype)),
    OUTPUT(comparison.worst.got_bits, ELEMENT, "got",
           .with = offsetof(gbx_check_output, tensor.dtype))};
static const gbx_field output_fields[] = {
    OUTPUT(slot, NUMBER, "arg_index"),
    OUTPUT(name, STRING, "arg_name"),
    OUTPUT(tensor.dtype, DTYPE, "dtype"),
    OUTPUT(comparison.elements, COUNT, "elements"),
    OUTPUT(not_written, COUNT, "not_written"),
    OUTPUT(comparison.mismatches, COUNT, "mismatches"),
    OUTPUT(comparison.max_abs, F64, "max_abs"),
    OUTPUT(comparison.max_rel, F64, "max_rel"),
    OUTPUT(comparison.tolerance.rtol, F64, "rtol"),
    OUTPUT(comparison.tolerance.atol, F64, "atol"),
    GBX_OBJECT("worst", worst_fields, GBX_KNOWN_IF(gbx_check_output, comparison.mismatches))};

/* --- text: the first lines --- */

const char *gbx_text_introduced(gbx_texts *t, const gbx_check_line *line) {
    const gbx_check_output *output = &line->outputs[line->worst_output];
    const gbx_comparison *c = &output->comparison;
    uint32_t dtype = output->tensor.dtype;
    uint64_t more = line->wrong_outputs > 1 ? line->wrong_outputs - 1 : 0;
    const char *others =
        more > 0 ? gbx_text_format(t, ", and some in %s", gbx_text_counted(t, more, "more output"))
                 : "";
    return gbx_text_format(t, "%s%s is %s, expected %s (rtol %s, atol %s); %s of %s %s wrong%s",
                           output->name ? gbx_text_shown(t, output->name)
                                        : gbx_text_format(t, "argument %" PRIu32, output->slot),
                           index_text(t, output), gbx_text_element(t, dtype, c->worst.got_bits),
                           gbx_text_element(t, dtype, c->worst.want_bits),
                           gbx_text_exact(t, c->tolerance.rtol),
                           gbx_text_exact(t, c->tolerance.atol), gbx_text_count(t, c->mismatches),
                           gbx_text_counted(t, c->elements, "element"),
                           gbx_text_verb(c->mismatches, "is", "are"), others);
}

static void print_first(const reporting *r, const gbx_check_line *line) {
    gbx_texts *t = &r->sink->texts;
    gbx_sink_print(r->sink, "task %s, %s, is the first that is wrong for its own inputs: %s\n%s\n",
                   task_text(r, line), kernel_text(r, line), gbx_text_introduced(t, line),
                   gbx_text_shown(t, replay_text(r, line)));
}

static bool has_failed(const gbx_reader *reader) {
    return gbx_reader_end(reader) && !gbx_reader_has_ended_well(reader);
}

/* Where no task is wrong in the dump. */
static void print_verdict(const reporting *r) {
    const gbx_check_report *report = r->report;
    gbx_texts *t = &r->sink->texts;
    uint64_t right = report->verdicts[GBX_CHECK_RIGHT], not_written = 0;
    uint64_t unchecked = report->verdicts[GBX_CHECK_NOT_CHECKED];
    const char *tasks =
        gbx_text_counted(t, report->count, report->left_out > 0 ? "chosen task" : "task");
    if (right == 0) {
        gbx_sink_print(r->sink, "nothing was checked: %s%s\n",
                       report->count > 0 ? tasks : "the dump has no tasks",
                       report->count > 0 ? " could not be compared with a reference" : "");
        return;
    }
    if (unchecked > 0)
        gbx_sink_print(r->sink, "%s of %s %s own inputs, %s %s not checked",
                       gbx_text_count(t, right), tasks,
                       gbx_text_verb(right, "is right for its", "are right for their"),
                       gbx_text_count(t, unchecked), gbx_text_verb(unchecked, "was", "were"));
    else
        gbx_sink_print(r->sink, "%s%s %s own inputs", report->count > 1 ? "all " : "", tasks,
                       gbx_text_verb(right, "is right for its", "are right for their"));
    for (uint64_t i = 0; i < report->count; ++i)
        if (report->lines[i].verdict == GBX_CHECK_RIGHT)
            not_written += report->lines[i].not_written;
    if (not_written > 0)
        gbx_sink_print(r->sink, "; %s of %s outputs %s not compared",
                       gbx_text_counted(t, not_written, "element"),
                       gbx_text_verb(right, "its", "their"),
                       gbx_text_verb(not_written, "was", "were"));
    if (!gbx_reader_is_complete(report->reader))
        gbx_sink_print(r->sink, "; the dump is not complete");
    else if (has_failed(report->reader))
        gbx_sink_print(r->sink, "; the run failed");
    gbx_sink_print(r->sink, "\n");
}

/* --- text: kernels that were called again --- */

/* The first task, in graph order, whose kernel has a finding or fails; NULL for none. */
static const gbx_check_line *first_accused(const reporting *r) {
    for (uint64_t i = 0; i < r->report->count; ++i)
        if (r->report->lines[i].kernels.is_accused)
            return &r->report->lines[i];
    return NULL;
}

/* What its first finding is, or how it fails. */
static const char *accusation(const reporting *r, const gbx_check_line *line) {
    gbx_texts *t = &r->sink->texts;
    const gbx_replay_result *result = &r->report->results[line->kernels.result];
    for (uint32_t i = 0; i < result->finding_count; ++i)
        if (!gbx_replay_is_note(&result->findings[i]))
            return gbx_text_finding(t, r->report->reader, result, &result->findings[i]);
    return gbx_text_format(t, "%s, fails when it is called again: %s",
                           gbx_text_shown(t, result->title),
                           gbx_text_shown(t, result->fault ? result->fault->text : ""));
}

static void print_accused(const reporting *r, const gbx_check_line *without) {
    uint64_t shown = 0;
    for (uint64_t i = 0; i < r->report->count; ++i) {
        const gbx_check_line *line = &r->report->lines[i];
        if (!line->kernels.is_accused || line == without)
            continue;
        if (shown++ < GBX_CHECK_LINES_MAX)
            gbx_sink_print(r->sink, "finding: %s\n", accusation(r, line));
    }
    if (shown > GBX_CHECK_LINES_MAX)
        gbx_sink_more(r->sink, "finding: ", shown, GBX_CHECK_LINES_MAX, "; --json lists all\n");
}

/* A task that is wrong in the dump, but whose kernel leaves the right values. */
static const char *acquittal(const reporting *r, const gbx_check_line *line) {
    gbx_texts *t = &r->sink->texts;
    bool fails = line->kernels.verdict == GBX_REPLAY_FAULT;
    return gbx_text_format(t, "task %s, %s, is wrong in the dump, but %s: %s", task_text(r, line),
                           kernel_text(r, line),
                           fails ? "its kernel fails when it is called again, and may not be to "
                                   "blame"
                                 : "its kernel leaves the right values when it is called again",
                           gbx_text_shown(t, line->reason));
}

/* `without` is shown already. */
static void print_acquitted(const reporting *r, gbx_check_verdict verdict, const char *word,
                            const gbx_check_line *without) {
    uint64_t shown = 0;
    for (uint64_t i = 0; i < r->report->count; ++i) {
        const gbx_check_line *line = &r->report->lines[i];
        if (line->verdict != verdict || line == without)
            continue;
        if (shown++ < GBX_CHECK_LINES_MAX)
            gbx_sink_print(r->sink, "%s: %s\n", word, acquittal(r, line));
    }
    if (shown > GBX_CHECK_LINES_MAX)
        gbx_sink_more(r->sink, gbx_text_format(&r->sink->texts, "%s: ", word), shown,
                      GBX_CHECK_LINES_MAX, "; --json lists all\n");
}

static const gbx_check_line *first_with(const reporting *r, gbx_check_verdict verdict) {
    for (uint64_t i = 0; i < r->report->count; ++i)
        if (r->report->lines[i].verdict == verdict)
            return &r->report->lines[i];
    return NULL;
}

/* Without a reference that says which is right. */
static void print_differing(const reporting *r) {
    gbx_texts *t = &r->sink->texts;
    uint64_t count = 0;
    const gbx_check_line *first = NULL;
    for (uint64_t i = 0; i < r->report->count; ++i) {
        const gbx_check_line *line = &r->report->lines[i];
        bool is_judged = line->verdict != GBX_CHECK_RIGHT && line->verdict != GBX_CHECK_NOT_CHECKED;
        if (!line->kernels.differs || is_judged || line->kernels.is_accused)
            continue;
        if (count++ == 0)
            first = line;
    }
    if (first)
        gbx_sink_print(
            r->sink,
            "differs: when called again, the kernels of %s leave other values than the dump has; "
            "the first is task %s: %s\n",
            gbx_text_counted(t, count, "task"), task_text(r, first),
            gbx_text_shown(t, replay_text(r, first)));
}

static void print_not_asked(const reporting *r, const char *what, gbx_check_skipped skipped,
                            const char *why) {
    gbx_texts *t = &r->sink->texts;
    if (skipped.count > 0)
        gbx_sink_print(r->sink, "not asked: %s of %s, the first is task %s: %s\n", what,
                       gbx_text_counted(t, skipped.count, "task"),
                       task_text(r, &r->report->lines[skipped.first]), gbx_text_shown(t, why));
}

/* What is not known about kernels, and why. */
static void print_all_not_asked(const reporting *r) {
    const gbx_check_report *report = r->report;
    const gbx_check_skipped *orders = report->orders;
    gbx_check_skipped skipped = {.count = report->not_called};
    while (skipped.count > 0 && !report->lines[skipped.first].kernels.why_not)
        ++skipped.first;
    print_not_asked(r, "stray writes, undeclared reads and races", skipped,
                    skipped.count > 0 ? report->lines[skipped.first].kernels.why_not : "");
    print_not_asked(r, "races", orders[GBX_ORDER_WAITS], "blocks wait for each other");
    print_not_asked(r, "races", orders[GBX_ORDER_SPINS], "blocks wait without yielding");
    print_not_asked(r, "races", orders[GBX_ORDER_TOO_LARGE],
                    "there are too many blocks, or too large outputs");
    print_not_asked(r, "races", orders[GBX_ORDER_FAILS], "a block fails when it is called alone");
    print_not_asked(r, "races", orders[GBX_ORDER_NO_MEMORY], "memory or processes ran out");
    print_not_asked(r, "stray writes", report->stray_unknown, "tensors are too large");
}

/* "250 checked: 6 introduced, 244 right; 6 not checked" */
static void print_counts(const reporting *r) {
    gbx_texts *t = &r->sink->texts;
    const gbx_check_report *report = r->report;
    const uint64_t *verdicts = report->verdicts;
    gbx_sink_print(r->sink, "%s checked: %s introduced, %s right; %s not checked",
                   gbx_text_count(t, report->count - verdicts[GBX_CHECK_NOT_CHECKED]),
                   gbx_text_count(t, verdicts[GBX_CHECK_INTRODUCED]),
                   gbx_text_count(t, verdicts[GBX_CHECK_RIGHT]),
                   gbx_text_count(t, verdicts[GBX_CHECK_NOT_CHECKED]));
    if (verdicts[GBX_CHECK_OVERWRITTEN] > 0)
        gbx_sink_print(r->sink, "; %s overwritten by another task",
                       gbx_text_count(t, verdicts[GBX_CHECK_OVERWRITTEN]));
    if (verdicts[GBX_CHECK_NOT_REPEATED] > 0)
        gbx_sink_print(r->sink, "; %s not repeated",
                       gbx_text_count(t, verdicts[GBX_CHECK_NOT_REPEATED]));
    if (report->accused > 0)
        gbx_sink_print(r->sink, "; %s with findings", gbx_text_count(t, report->accused));
    if (report->left_out > 0)
        gbx_sink_print(r->sink, "; %s left out by --kernel and --task",
                       gbx_text_count(t, report->left_out));
    gbx_sink_print(r->sink, "\n");
}

/* --- text: tasks that are wrong --- */

typedef struct introduced {
    const reporting *r;
    const gbx_check_line *lines[GBX_CHECK_LINES_MAX];
} introduced;

typedef struct introduced_row {
    const char *task, *kernel, *arg, *wrong, *worst, *expected, *got;
} introduced_row;

static const gbx_field introduced_fields[] = {
    GBX_FIELD(introduced_row, task, STRING, NULL, "TASK", .is_right = true),
    GBX_FIELD(introduced_row, kernel, STRING, NULL, "KERNEL", .narrowest = 8),
    GBX_FIELD(introduced_row, arg, STRING, NULL, "ARG", .narrowest = 6, .leaves = 3),
    GBX_FIELD(introduced_row, wrong, STRING, NULL, "WRONG", .is_right = true, .leaves = 1),
    GBX_FIELD(introduced_row, worst, STRING, NULL, "WORST", .narrowest = 8, .leaves = 2),
    GBX_FIELD(introduced_row, expected, STRING, NULL, "EXPECTED"),
    GBX_FIELD(introduced_row, got, STRING, NULL, "GOT")};

static gbx_status make_introduced(const void *context, uint64_t number, void *out_row) {
    const introduced *shown = context;
    const gbx_check_line *line = shown->lines[number];
    const gbx_check_output *output = &line->outputs[line->worst_output];
    const gbx_comparison *c = &output->comparison;
    gbx_texts *t = &shown->r->sink->texts;
    const char *arg = gbx_text_arg(t, output->slot, output->name);
    *(introduced_row *)out_row = (introduced_row){
        task_text(shown->r, line),
        kernel_name(shown->r, line),
        line->wrong_outputs > 1 ? gbx_text_format(t, "%s +%" PRIu32, arg, line->wrong_outputs - 1)
                                : arg,
        gbx_text_format(t, "%s of %s", gbx_text_count(t, c->mismatches),
                        gbx_text_count(t, c->elements)),
        index_text(t, output),
        gbx_text_element(t, output->tensor.dtype, c->worst.want_bits),
        gbx_text_element(t, output->tensor.dtype, c->worst.got_bits)};
    return NULL;
}

static gbx_status print_introduced(const reporting *r) {
    introduced shown = {.r = r};
    introduced_row row;
    uint64_t count = 0, all = r->report->verdicts[GBX_CHECK_INTRODUCED];
    for (uint64_t i = 0; i < r->report->count && count < GBX_CHECK_LINES_MAX; ++i)
        if (r->report->lines[i].verdict == GBX_CHECK_INTRODUCED)
            shown.lines[count++] = &r->report->lines[i];
    GBX_TRY(gbx_rows_print(
        r->sink, GBX_ROWS_MADE(introduced_fields, &shown, count, make_introduced, &row), 2));
    gbx_sink_more(r->sink, "", all, count, "; --json lists all\n");
    return NULL;
}

/* --- text: what was not compared --- */

static gbx_status print_unchecked(const reporting *r) {
    gbx_texts *t = &r->sink->texts;
    gbx_check_group *groups;
    size_t count;
    GBX_TRY(gbx_check_report_group(r->report, true, &groups, &count));
    for (size_t i = 0; i < count && i < GBX_CHECK_LINES_MAX; ++i) {
        const gbx_check_group *group = &groups[i];
        gbx_sink_print(r->sink, "not checked: %s of %s (task%s ",
                       gbx_text_counted(t, group->tasks, "task"),
                       kernel_text(r, group->examples[0]), gbx_text_verb(group->tasks, "", "s"));
        for (uint64_t e = 0; e < group->tasks && e < GBX_CHECK_EXAMPLES; ++e)
            gbx_sink_print(r->sink, "%s%s", e > 0 ? ", " : "", task_text(r, group->examples[e]));
        gbx_sink_more(r->sink, " ", group->tasks, GBX_CHECK_EXAMPLES, "");
        gbx_sink_print(r->sink, "): %s\n", gbx_text_shown(t, group->examples[0]->reason));
    }
    if (count > GBX_CHECK_LINES_MAX)
        gbx_sink_count(r->sink, "not checked: tasks with ", count - GBX_CHECK_LINES_MAX,
                       "more reason", "; --json lists all");
    free(groups);
    return NULL;
}

/* What references do not write, and what they must not write. */
static void print_writes(const reporting *r, const gbx_check_group *kernel) {
    gbx_texts *t = &r->sink->texts;
    const char *name = kernel_text(r, kernel->examples[0]);
    if (kernel->not_written > 0)
        gbx_sink_print(r->sink,
                       "not compared: %s that the reference of %s does not write, in %s, first in "
                       "task %s\n",
                       gbx_text_counted(t, kernel->not_written, "element"), name,
                       gbx_text_counted(t, kernel->not_written_tasks, "task"),
                       task_text(r, kernel->first_not_written));
    if (kernel->stray_tasks > 0)
        gbx_sink_print(r->sink,
                       "warning: the reference of %s writes outside its outputs in %s, first in "
                       "task %s: %s from 0x%" PRIx64 " on\n",
                       name, gbx_text_counted(t, kernel->stray_tasks, "task"),
                       task_text(r, kernel->first_stray),
                       gbx_text_counted(t, kernel->first_stray->stray_bytes, "byte"),
                       kernel->first_stray->stray_address);
    if (kernel->stray_unknown_tasks > 0)
        gbx_sink_print(r->sink,
                       "not searched for writes outside outputs: the reference of %s in %s, "
                       "because of large tensors\n",
                       name, gbx_text_counted(t, kernel->stray_unknown_tasks, "task"));
}

/* What the dump itself lacks, or the order of its tasks. */
static void print_dump_state(const reporting *r) {
    const gbx_check_report *report = r->report;
    const gbx_reader *reader = report->reader;
    const char *level = gbx_reader_run(reader)->dump_level;
    gbx_texts *t = &r->sink->texts;
    uint64_t dropped = gbx_reader_get_totals(reader)->dropped, missing = 0;
    for (uint64_t i = 0; i < report->count; ++i)
        if (report->lines[i].verdict == GBX_CHECK_INTRODUCED)
            missing += report->lines[i].missing_outputs;
    gbx_sink_count(r->sink, "not compared: ", missing, "output",
                   " of wrong tasks that the dump lacks");
    if (report->verdicts[GBX_CHECK_NOT_CHECKED] > 0 && level && strcmp(level, "full") != 0)
        gbx_sink_print(r->sink,
                       "the dump's level is %s: to check all tasks, run again with "
                       "--dump-tensor=full\n",
                       gbx_text_shown(t, level));
    if (dropped > 0)
        gbx_sink_print(r->sink, "%s of the run %s lost: the dump may lack tasks\n",
                       gbx_text_counted(t, dropped, "record"),
                       gbx_text_verb(dropped, "was", "were"));
    if (has_failed(reader))
        gbx_sink_print(r->sink, "the run failed: %s\n",
                       gbx_text_shown(t, gbx_reader_end_text(reader)));
    else if (!gbx_reader_end(reader))
        gbx_sink_print(r->sink, "the run was killed: the dump may lack tasks\n");
    if (!gbx_reader_get_origin(reader)->is_journal)
        gbx_sink_print(r->sink, "no journal: tasks are in order of submission, because the graph "
                                "is unknown\n");
    if (report->bad_edges > 0)
        gbx_sink_print(r->sink, "%s of the graph %s invalid; run glassbox verify\n",
                       gbx_text_counted(t, report->bad_edges, "edge"),
                       gbx_text_verb(report->bad_edges, "is", "are"));
}

/* --- all of it --- */

static gbx_status print_text(const reporting *r, const gbx_check_line *first) {
    kernel_row row;
    const gbx_check_line *accused = first_accused(r);
    bool is_accused_first = accused && (!first || accused < first);
    const gbx_check_line *head = first || accused ? NULL : first_with(r, GBX_CHECK_NOT_REPEATED);
    if (is_accused_first)
        gbx_sink_print(r->sink, "%s\n%s\n", accusation(r, accused),
                       gbx_text_shown(&r->sink->texts, replay_text(r, accused)));
    if (first)
        print_first(r, first);
    else if (head)
        gbx_sink_print(r->sink, "%s\n%s\n", acquittal(r, head),
                       gbx_text_shown(&r->sink->texts, replay_text(r, head)));
    else if (!accused)
        print_verdict(r);
    print_counts(r);
    print_accused(r, is_accused_first ? accused : NULL);
    print_acquitted(r, GBX_CHECK_OVERWRITTEN, "overwritten", NULL);
    print_acquitted(r, GBX_CHECK_NOT_REPEATED, "not repeated", head);
    print_differing(r);
    print_all_not_asked(r);
    if (first) {
        gbx_sink_print(r->sink, "\n");
        GBX_TRY(print_introduced(r));
    }
    if (r->report->count > 0) {
        gbx_sink_print(r->sink, "\n");
        GBX_TRY(gbx_rows_print(
            r->sink, GBX_ROWS_MADE(kernel_fields, r, r->kernel_count, make_kernel, &row), 2));
        GBX_TRY(print_unchecked(r));
        for (size_t i = 0; i < r->kernel_count; ++i)
            print_writes(r, &r->kernels[i]);
    }
    print_dump_state(r);
    return NULL;
}

static void put_first(const reporting *r, const gbx_check_line *first) {
    gbx_json_writer *json = &r->sink->json;
    gbx_json_key(json, "first");
    if (!first) {
        gbx_json_null(json);
        return;
    }
    const task_row row = make_task(r, first);
    const gbx_check_output *output = &first->outputs[first->worst_output];
    gbx_json_begin_object(json);
    gbx_json_put_row(json, &(const gbx_rows){task_fields, IDENTITY_FIELDS, .rows = &row});
    gbx_json_put_row(json, &(const gbx_rows){output_fields, ARGUMENT_FIELDS, .rows = output});
    gbx_json_put_row(json, GBX_ROWS(worst_fields, output, 1));
    gbx_json_put_f64(json, "rtol", output->comparison.tolerance.rtol);
    gbx_json_put_f64(json, "atol", output->comparison.tolerance.atol);
    gbx_json_put_string(json, "replay", replay_text(r, first));
    gbx_json_end_object(json);
}

static void put_task(const reporting *r, const gbx_check_line *line) {
    gbx_json_writer *json = &r->sink->json;
    const task_row row = make_task(r, line);
    gbx_json_begin_object(json);
    gbx_json_put_row(json, GBX_ROWS(task_fields, &row, 1));
    gbx_json_put_rows(json, "outputs", GBX_ROWS(output_fields, line->outputs, line->output_count));
    gbx_json_end_object(json);
}

/* Called tasks with several dispatches that were not called one at a time. */
static uint64_t count_no_races(const gbx_check_report *report) {
    const gbx_check_skipped *orders = report->orders;
    return orders[GBX_ORDER_WAITS].count + orders[GBX_ORDER_SPINS].count +
           orders[GBX_ORDER_TOO_LARGE].count + orders[GBX_ORDER_FAILS].count +
           orders[GBX_ORDER_NO_MEMORY].count;
}

static gbx_status print_json(const reporting *r, const gbx_check_line *first) {
    const gbx_check_report *report = r->report;
    const uint64_t *verdicts = report->verdicts;
    kernel_row row;
    gbx_json_writer *json = gbx_sink_json_begin(r->sink);
    gbx_json_put_string(json, "dump", r->dump->directory);
    gbx_json_put_string(json, "scene", report->scene);
    gbx_json_put_bool(json, "complete", gbx_reader_is_complete(report->reader));
    gbx_json_put_u64(json, "dropped_records", gbx_reader_get_totals(report->reader)->dropped);
    gbx_json_put_u64(json, "checked", report->count - verdicts[GBX_CHECK_NOT_CHECKED]);
    for (uint32_t v = 0; v < verdict_set.count; ++v)
        gbx_json_put_u64(json, gbx_name_of(&verdict_set, v), verdicts[v]);
    gbx_json_put_u64(json, "left_out", report->left_out);
    gbx_json_put_u64(json, "bad_edges", report->bad_edges);
    gbx_json_put_u64(json, "not_called", report->not_called);
    gbx_json_put_u64(json, "races_not_asked", count_no_races(report));
    put_first(r, first);
    gbx_findings_put(r->sink, report->reader, report->results, report->result_count);
    gbx_json_put_rows(json, "kernels",
                      GBX_ROWS_MADE(kernel_fields, r, r->kernel_count, make_kernel, &row));
    gbx_json_key(json, "tasks");
    gbx_json_begin_array(json);
    for (uint64_t i = 0; i < report->count && !gbx_json_has_failed(json); ++i)
        put_task(r, &report->lines[i]);
    gbx_json_end_array(json);
    return gbx_sink_json_end(r->sink, NULL);
}

gbx_status gbx_check_print(gbx_sink *sink, const gbx_opened_dump *dump, const char *given,
                           const gbx_check_report *report, bool as_json) {
    reporting r = {.sink = sink, .dump = dump, .given = given, .report = report};
    const gbx_check_line *first = gbx_check_report_first(report);
    gbx_check_group *kernels;
    GBX_TRY(gbx_check_report_group(report, false, &kernels, &r.kernel_count));
    r.kernels = kernels;
    gbx_status status = as_json ? print_json(&r, first) : print_text(&r, first);
    free(kernels);
    return status;
}
