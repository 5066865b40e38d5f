#include <inttypes.h>

#include <glassbox/chip.h>
#include <glassbox/orchestration.h>

#include "report/reports.h"
#include "report/table.h"

/* --- rows --- */

/* The kind, dtype and shape of an argument in one dump. */
typedef struct form {
    uint32_t kind;
    gbx_tensor tensor;
} form;

/* A record, with what the dump that is shown says of its argument. */
typedef struct row {
    gbx_diff_record record;
    bool has_a;
    bool has_b;
    uint64_t task;
    bool has_task; /* its record is there */
    uint64_t task_id;
    bool has_kernel;
    const char *kernel;
    uint32_t slot;
    const char *name; /* NULL */
    uint32_t role;
    uint32_t stage;
    form form; /* of A, or of B where it is only there */
    form other;
    double rmse;
    double cosine;
    bool has_ulp;
    bool has_bad;
    const char *why; /* of the first difference */
    /* For people: */
    const char *task_text, *arg, *dtype, *shape, *bad, *note, *place;
    const char *how; /* see form_text */
} row;

#define METRIC(member, kind, key, heading, ...)                                                    \
    GBX_FIELD_IF(row, record.has_metrics, member, kind, key, heading, __VA_ARGS__)
#define BAD(member, kind, key, heading, ...)                                                       \
    GBX_FIELD_IF(row, has_bad, member, kind, key, heading, __VA_ARGS__)
#define OF_DTYPE .with = offsetof(row, record.comparison.dtype)
#define OF_SHAPE .with = offsetof(row, form.tensor)

#define CAUSE_FIELD GBX_FIELD(row, record.cause, NAME, "cause", NULL, .names = &gbx_diff_causes)
#define INDEX_FIELDS                                                                               \
    GBX_FIELD_IF(row, has_a, record.index_a, NUMBER, "index_a", NULL),                             \
        GBX_FIELD_IF(row, has_b, record.index_b, NUMBER, "index_b", NULL)
#define ARGUMENT_FIELDS                                                                            \
    GBX_FIELD(row, task, NUMBER, "task_seq", NULL),                                                \
        GBX_FIELD_IF(row, has_task, task_id, HEX, "task_id", NULL),                                \
        GBX_FIELD_IF(row, has_kernel, kernel, STRING, "kernel", NULL),                             \
        GBX_FIELD(row, slot, NUMBER, "arg_index", NULL),                                           \
        GBX_FIELD(row, name, STRING, "arg_name", NULL),                                            \
        GBX_FIELD(row, role, NAME, "role", NULL, .names = &gbx_roles),                             \
        GBX_FIELD(row, stage, NAME, "stage", NULL, .names = &gbx_stages)

static const gbx_field first_fields[] = {ARGUMENT_FIELDS, CAUSE_FIELD,
                                         GBX_FIELD(row, why, STRING, "why", NULL), INDEX_FIELDS};

static const gbx_field record_fields[] = {
    GBX_FIELD(row, record.verdict, NAME, "verdict", NULL, .names = &gbx_diff_verdicts),
    GBX_FIELD(row, record.reason, NAME, "reason", NULL, .names = &gbx_diff_reasons),
    CAUSE_FIELD,
    INDEX_FIELDS,
    ARGUMENT_FIELDS,
    GBX_FIELD(row, form.kind, NAME, "kind", NULL, .names = &gbx_kinds),
    GBX_FIELD(row, form.tensor.dtype, DTYPE, "dtype", NULL),
    GBX_FIELD(row, form.tensor, SHAPE, "shape", NULL)};

static const gbx_field other_fields[] = {
    GBX_FIELD(row, other.kind, NAME, "kind_b", NULL, .names = &gbx_kinds),
    GBX_FIELD(row, other.tensor.dtype, DTYPE, "dtype_b", NULL),
    GBX_FIELD(row, other.tensor, SHAPE, "shape_b", NULL)};

static const gbx_field metric_fields[] = {
    GBX_FIELD(row, record.is_truncated, BOOL, "truncated", NULL),
    METRIC(record.comparison.elements, COUNT, "elements", NULL),
    METRIC(record.comparison.unequal, COUNT, "unequal", NULL),
    METRIC(record.comparison.mismatches, COUNT, "mismatches", NULL),
    METRIC(record.comparison.max_abs, F64, "max_abs", NULL),
    METRIC(record.comparison.max_rel, F64, "max_rel", NULL),
    METRIC(rmse, F64, "rmse", NULL),
    METRIC(cosine, F64, "cosine", NULL),
    GBX_FIELD_IF(row, has_ulp, record.comparison.max_ulp, WIDE, "max_ulp", NULL),
    METRIC(record.comparison.tolerance.atol, F64, "atol", NULL),
    METRIC(record.comparison.tolerance.rtol, F64, "rtol", NULL),
    METRIC(record.comparison.tolerance.ulp, WIDE, "ulp", NULL),
    BAD(record.comparison.first_bad.index, INDEX, "first_bad", NULL, OF_SHAPE),
    BAD(record.comparison.first_bad.got_bits, ELEMENT, "first_bad_a", NULL, OF_DTYPE),
    BAD(record.comparison.first_bad.want_bits, ELEMENT, "first_bad_b", NULL, OF_DTYPE),
    BAD(record.comparison.worst.index, INDEX, "worst", NULL, OF_SHAPE),
    BAD(record.comparison.worst.got_bits, ELEMENT, "worst_a", NULL, OF_DTYPE),
    BAD(record.comparison.worst.want_bits, ELEMENT, "worst_b", NULL, OF_DTYPE)};

static const gbx_field columns[] = {
    GBX_FIELD(row, task_text, STRING, NULL, "TASK", .is_right = true),
    GBX_FIELD(row, kernel, STRING, NULL, "KERNEL", .narrowest = 8),
    GBX_FIELD(row, stage, NAME, NULL, "STAGE", .names = &gbx_stages, .leaves = 8),
    GBX_FIELD(row, arg, STRING, NULL, "ARG", .narrowest = 6, .leaves = 10),
    GBX_FIELD(row, dtype, STRING, NULL, "DTYPE", .leaves = 4),
    GBX_FIELD(row, shape, STRING, NULL, "SHAPE", .narrowest = 8, .leaves = 2),
    METRIC(bad, STRING, NULL, "BAD", .is_right = true, .leaves = 11),
    METRIC(record.comparison.max_abs, F64, NULL, "MAX_ABS"),
    METRIC(record.comparison.max_rel, F64, NULL, "MAX_REL", .leaves = 7),
    GBX_FIELD_IF(row, has_ulp, record.comparison.max_ulp, NUMBER, NULL, "MAX_ULP", .leaves = 5),
    METRIC(rmse, F64, NULL, "RMSE", .leaves = 1),
    METRIC(cosine, F64, NULL, "COSINE", .leaves = 3),
    BAD(record.comparison.first_bad.index, INDEX, NULL, "FIRST_BAD", OF_SHAPE, .leaves = 6),
    GBX_FIELD(row, note, STRING, NULL, "NOTE", .narrowest = 10, .leaves = 9)}; /* "introduced" */

static form form_of(const gbx_entry *entry) {
    form f = {.kind = entry->tensor ? GBX_KIND_TENSOR : GBX_KIND_SCALAR};
    if (entry->tensor)
        gbx_record_view(entry->tensor, &f.tensor);
    f.tensor.dtype = entry->dtype;
    return f;
}

/* The entry that is shown: of the dump that is shown where the record is there. */
static const gbx_entry *find_shown(const gbx_diff_report *report, const gbx_diff_record *record,
                                   const gbx_reader **out_reader) {
    bool is_b = record->b && (report->dumps->shows_b || !record->a);
    *out_reader = is_b ? report->dumps->b.reader : report->dumps->a.reader;
    return is_b ? record->b : record->a;
}

/* Without texts for people. */
static void fill_row(const gbx_diff_report *report, const gbx_diff_record *record, row *out_row) {
    const gbx_comparison *c = &record->comparison;
    const gbx_reader *reader;
    const gbx_entry *entry = find_shown(report, record, &reader);
    const gbx_record_task *task = entry->task;
    *out_row = (row){.record = *record,
                     .has_a = record->a,
                     .has_b = record->b,
                     .task = entry->head->task,
                     .has_task = task,
                     .task_id = task ? task->task_id : 0,
                     .kernel = gbx_text_kernel(&report->sink->texts, reader, task),
                     .slot = entry->head->arg_index,
                     .name = entry->arg_name,
                     .role = entry->head->role,
                     .stage = entry->head->stage,
                     .form = form_of(record->a ? record->a : record->b),
                     .other = form_of(record->b ? record->b : record->a)};
    for (size_t i = 0; task && i < GBX_SUBTASK_COUNT; ++i)
        out_row->has_kernel |= task->func_ids[i] != GBX_NO_KERNEL;
    if (!record->has_metrics)
        return;
    out_row->rmse = gbx_comparison_rmse(c);
    out_row->cosine = gbx_comparison_cosine(c);
    out_row->has_ulp = c->max_ulp < UINT64_MAX || !gbx_dtype_is_float(c->dtype);
    out_row->has_bad = c->mismatches > 0;
}

/* --- texts --- */

/* "task 3, kernel add, arg 1 y" */
static const char *place_text(gbx_texts *t, const gbx_reader *reader, const gbx_entry *entry) {
    return gbx_text_format(t, "task %s, kernel %s, arg %s", gbx_text_task_of(t, reader, entry),
                           gbx_text_kernel(t, reader, entry->task),
                           gbx_text_arg(t, entry->head->arg_index, entry->arg_name));
}

/* How a record that is different differs: "dtype float32 in A, float16 in B"; NULL where it is by
 * the elements of a tensor. */
static const char *form_text(gbx_texts *t, const gbx_diff_record *r) {
    const gbx_entry *a = r->a, *b = r->b;
    bool has_a = a->head->flags & GBX_FLAG_HAS_PAYLOAD;
    bool has_b = b->head->flags & GBX_FLAG_HAS_PAYLOAD;
    switch (r->reason) {
    case GBX_DIFF_KIND:
        return gbx_text_format(t, "a %s in A, a %s in B", gbx_name_of(&gbx_kinds, form_of(a).kind),
                               gbx_name_of(&gbx_kinds, form_of(b).kind));
    case GBX_DIFF_DTYPE:
        return gbx_text_format(t, "dtype %s in A, %s in B", gbx_dtype_name(a->dtype),
                               gbx_dtype_name(b->dtype));
    case GBX_DIFF_SHAPE:
        return gbx_text_format(t, "shape %s in A, %s in B", gbx_text_shape(t, a),
                               gbx_text_shape(t, b));
    case GBX_DIFF_HASH:
        return gbx_text_format(t, "hashes differ, payload is missing in %s",
                               has_a   ? "B"
                               : has_b ? "A"
                                       : "both");
    default:
        return a->tensor ? NULL
                         : gbx_text_format(
                               t, "%s in A, %s in B",
                               gbx_text_element(t, a->dtype, r->comparison.first_bad.got_bits),
                               gbx_text_element(t, b->dtype, r->comparison.first_bad.want_bits));
    }
}

/* "11 of 128 elements differ, the first at [0, 3]: 1.0 in A, 2.0 in B; max abs 1, max rel 0.5" */
static const char *metrics_text(gbx_texts *t, const row *r) {
    const gbx_comparison *c = &r->record.comparison;
    const char *kept = r->record.is_truncated ? "kept element" : "element";
    bool has_ulp = c->max_ulp < UINT64_MAX;
    return gbx_text_format(
        t, "%s of %s differ%s, the first at %s: %s in A, %s in B; max abs %s, max rel %s%s%s",
        gbx_text_count(t, c->mismatches), gbx_text_counted(t, c->elements, kept),
        gbx_text_verb(c->mismatches, "s", ""),
        gbx_text_index(t, &r->form.tensor, c->first_bad.index),
        gbx_text_element(t, c->dtype, c->first_bad.got_bits),
        gbx_text_element(t, c->dtype, c->first_bad.want_bits), gbx_text_real(t, c->max_abs, 5),
        gbx_text_real(t, c->max_rel, 5), has_ulp ? ", max ulp " : "",
        has_ulp ? gbx_text_count(t, c->max_ulp) : "");
}

/* The cause first: the end is what is cut. */
static const char *note_text(gbx_texts *t, const gbx_diff_record *r, const char *how) {
    const char *cut = r->is_truncated ? ", truncated" : "";
    if (r->verdict == GBX_DIFF_WITHIN)
        return gbx_text_format(t, "%" PRIu64 " near%s", r->comparison.unequal, cut);
    if (r->verdict != GBX_DIFF_DIFFERENT)
        return r->verdict == GBX_DIFF_ONLY_A ? "only in A" : "only in B";
    const char *cause = gbx_name_of(&gbx_diff_causes, r->cause);
    return gbx_text_format(t, "%s%s%s%s",
                           r->ground == GBX_DIFF_IS_INPUT ? "input"
                           : cause                        ? cause
                                                          : "cause unknown",
                           how ? ", " : "", how ? how : "", cut);
}

/* All of a record that was kept. Names live until other entries are read. */
static gbx_status read_again(const gbx_diff_report *report, const gbx_diff_record *kept,
                             row *out_row) {
    gbx_texts *t = &report->sink->texts;
    gbx_diff_record r = *kept;
    gbx_entry a, b;
    const gbx_reader *reader;
    if (r.index_a != GBX_DIFF_NONE) {
        GBX_TRY(gbx_entries_at(report->dumps->a.entries, r.index_a, &a));
        r.a = &a;
    }
    if (r.index_b != GBX_DIFF_NONE) {
        GBX_TRY(gbx_entries_at(report->dumps->b.entries, r.index_b, &b));
        r.b = &b;
    }
    fill_row(report, &r, out_row);
    const gbx_entry *entry = find_shown(report, &r, &reader);
    out_row->task_text = gbx_text_task_of(t, reader, entry);
    out_row->arg = gbx_text_arg(t, entry->head->arg_index, entry->arg_name);
    out_row->dtype = gbx_dtype_name(entry->dtype);
    out_row->shape = gbx_text_shape(t, entry);
    out_row->bad =
        gbx_text_format(t, "%" PRIu64 "/%" PRIu64, r.comparison.mismatches, r.comparison.elements);
    out_row->how = r.verdict == GBX_DIFF_DIFFERENT ? form_text(t, &r) : NULL;
    out_row->note = note_text(t, &r, out_row->how);
    out_row->place = place_text(t, reader, entry);
    out_row->record.a = out_row->record.b = NULL;
    return NULL;
}

/* --- why --- */

#define UNCLEAR "unclear whether introduced or inherited: "

static gbx_status why_output(const gbx_diff_report *report, const gbx_diff_record *first,
                             const char **out_text) {
    static const char *const sentences[] = {
        [GBX_DIFF_INPUTS_EQUAL] = "introduced here (its inputs are equal)",
        [GBX_DIFF_INPUTS_WITHIN] = "introduced here (its inputs are equal within tolerance)",
        [GBX_DIFF_INPUTS_NONE] = "introduced here (the task has no inputs)",
        [GBX_DIFF_INPUT_DIFFERS] = "inherited (its input arg %s differs)",
        [GBX_DIFF_INPUTS_NOT_COMPARED] = UNCLEAR "its input arg %s was not compared",
        [GBX_DIFF_INPUTS_TRUNCATED] = UNCLEAR "only the beginning of its input arg %s was compared",
        [GBX_DIFF_INPUTS_UNKNOWN] = UNCLEAR "the dumps may lack some of its inputs"};
    const gbx_opened_dump *dump = first->input_is_b ? &report->dumps->b : &report->dumps->a;
    gbx_texts *t = &report->sink->texts;
    const char *input = "";
    gbx_entry entry;
    if (first->input != GBX_DIFF_NONE) {
        GBX_TRY(gbx_entries_at(dump->entries, first->input, &entry));
        input = gbx_text_arg(t, entry.head->arg_index, entry.arg_name);
    }
    *out_text = gbx_text_format(t, sentences[first->ground], input);
    return NULL;
}

static gbx_status writer_text(const gbx_diff_report *report, const gbx_opened_dump *dump,
                              uint64_t index, const char **out_text) {
    gbx_entry entry;
    *out_text = "no task";
    if (index == GBX_DIFF_NONE)
        return NULL;
    GBX_TRY(gbx_entries_at(dump->entries, index, &entry));
    *out_text = place_text(&report->sink->texts, dump->reader, &entry);
    return NULL;
}

static gbx_status why_input(const gbx_diff_report *report, const gbx_diff_result *result,
                            const char **out_text) {
    static const char *const sentences[] = {
        [GBX_DIFF_ORIGIN_UNKNOWN] = "inherited: the dumps do not say which task wrote it",
        [GBX_DIFF_ORIGIN_PASSED] = "the orchestration passed another value",
        [GBX_DIFF_ORIGIN_FORM] = "the orchestration passed another kind, dtype or shape",
        [GBX_DIFF_ORIGIN_ARGUMENT] =
            "no task in the dump wrote it: the arguments of the run differ",
        [GBX_DIFF_ORIGIN_WRITER_EQUAL] =
            "it changed after its last writer, %s, left it equal: run glassbox audit",
        [GBX_DIFF_ORIGIN_WRITER_PART] =
            "its last writer, %s, may have written only a part of it, and left that equal",
        [GBX_DIFF_ORIGIN_WRITER_DIFFERS] = "inherited from %s, which the filters exclude",
        [GBX_DIFF_ORIGIN_WRITER_UNKNOWN] = "its last writer, %s, was not compared completely",
        [GBX_DIFF_ORIGIN_WRITERS_APART] = "inherited: last written by %s in A and by %s in B"};
    const gbx_diff_dumps *dumps = report->dumps;
    gbx_texts *t = &report->sink->texts;
    const char *a, *b;
    GBX_TRY(writer_text(report, &dumps->a, result->writer_a, &a));
    GBX_TRY(writer_text(report, &dumps->b, result->writer_b, &b));
    bool is_first_b =
        result->origin != GBX_DIFF_ORIGIN_WRITERS_APART && result->writer_a == GBX_DIFF_NONE;
    *out_text = gbx_text_format(t, sentences[result->origin], is_first_b ? b : a, b);
    return NULL;
}

/* Why the first difference is there; names are not escaped, like those of the next. */
static gbx_status why_text(const gbx_diff_report *report, const gbx_diff_result *result,
                           const char **out_text) {
    if (result->first.ground == GBX_DIFF_IS_INPUT)
        return why_input(report, result, out_text);
    return why_output(report, &result->first, out_text);
}

/* From which task on the graphs differ; NULL where they do not. */
static gbx_status graph_text(const gbx_diff_report *report, const gbx_diff_result *result,
                             const char **out_text) {
    const gbx_opened_dump *const dumps[] = {&report->dumps->a, &report->dumps->b};
    const uint64_t indices[] = {result->graph_a, result->graph_b};
    const char *kernels[2] = {NULL, NULL}, *task = NULL;
    gbx_texts *t = &report->sink->texts;
    gbx_entry entry;
    *out_text = NULL;
    if (!result->has_other_graph)
        return NULL;
    for (size_t i = 0; i < 2; ++i) {
        if (indices[i] == GBX_DIFF_NONE)
            continue;
        GBX_TRY(gbx_entries_at(dumps[i]->entries, indices[i], &entry));
        task = task ? task : gbx_text_task_of(t, dumps[i]->reader, &entry);
        kernels[i] = gbx_text_kernel(t, dumps[i]->reader, entry.task);
    }
    const char *where = kernels[0] ? "A" : "B";
    *out_text = gbx_text_format(t, "the graphs differ from task %s on: ", task);
    if (kernels[0] && kernels[1])
        *out_text = gbx_text_format(t, "%sit is kernel %s in A and %s in B", *out_text, kernels[0],
                                    kernels[1]);
    else
        *out_text = gbx_text_format(t, "%sit is only in %s, kernel %s", *out_text, where,
                                    kernels[0] ? kernels[0] : kernels[1]);
    return NULL;
}

/* --- text: the line that matters --- */

static gbx_status print_first(const gbx_diff_report *report, const gbx_diff_result *result) {
    gbx_sink *sink = report->sink;
    gbx_texts *t = &sink->texts;
    const char *why;
    row first;
    GBX_TRY(why_text(report, result, &why));
    GBX_TRY(read_again(report, &result->first, &first));
    gbx_sink_print(
        sink, "%s: %s, %s: %s\n  %s%s\n", gbx_sink_colour(sink, GBX_RED, "first difference"),
        gbx_text_shown(t, first.place), gbx_name_of(&gbx_stages, first.stage),
        gbx_text_shown(t, why), first.how ? first.how : metrics_text(t, &first),
        result->first.reason == GBX_DIFF_HASH ? ": unknown by how much, or whether within tolerance"
                                              : "");
    return NULL;
}

/* Ends a line that says that something is equal with what that is not known of. */
static void print_unknown(gbx_sink *sink, const gbx_diff_result *result) {
    gbx_texts *t = &sink->texts;
    if (result->truncated > 0)
        gbx_sink_print(sink, "; only the beginning of %s", gbx_text_count(t, result->truncated));
    if (result->counts[GBX_DIFF_NOT_COMPARED] > 0)
        gbx_sink_print(sink, "; %s not compared",
                       gbx_text_count(t, result->counts[GBX_DIFF_NOT_COMPARED]));
    gbx_sink_print(sink, "\n");
}

/* Why a dump may have less than the other. */
static void print_end(gbx_sink *sink, const char *name, const gbx_reader *reader) {
    if (!gbx_reader_is_complete(reader))
        gbx_sink_print(sink, "; %s is not complete", name);
    else if (!gbx_reader_has_ended_well(reader))
        gbx_sink_print(sink, "; the run of %s failed", name);
}

/* Where no record differs. */
static void print_alike(const gbx_diff_report *report, const gbx_diff_result *result) {
    gbx_sink *sink = report->sink;
    gbx_texts *t = &sink->texts;
    uint64_t within = result->counts[GBX_DIFF_WITHIN];
    uint64_t a = result->counts[GBX_DIFF_ONLY_A], b = result->counts[GBX_DIFF_ONLY_B];
    const char *compared = gbx_text_count(t, result->compared);
    if (a + b > 0) {
        gbx_sink_print(sink, "%s: %s only in A, %s only in B",
                       gbx_sink_colour(sink, GBX_RED, "unmatched entries"), gbx_text_count(t, a),
                       gbx_text_count(t, b));
        print_end(sink, "A", report->dumps->a.reader);
        print_end(sink, "B", report->dumps->b.reader);
        gbx_sink_print(
            sink, result->compared > 0 ? "; %s compared, none differs" : "; nothing was compared",
            compared);
    } else if (result->compared == 0) {
        gbx_sink_print(sink, "%s\n", gbx_sink_colour(sink, GBX_RED, "nothing was compared"));
        return;
    } else if (within == 0) {
        gbx_sink_print(sink, "%s: %s compared, all the same",
                       gbx_sink_colour(sink, GBX_GREEN, "equal"),
                       gbx_text_counted(t, result->compared, "entry"));
    } else {
        gbx_sink_print(sink, "%s: %s compared, %s equal, %s near",
                       gbx_sink_colour(sink, GBX_GREEN, "equal within tolerance"),
                       gbx_text_counted(t, result->compared, "entry"),
                       gbx_text_count(t, result->counts[GBX_DIFF_EQUAL]),
                       gbx_text_count(t, within));
    }
    print_unknown(sink, result);
}

/* --- text: the table --- */

/* What the rows of one table are made of. */
typedef struct source {
    const gbx_diff_report *report;
    const gbx_diff_kept *kept;
} source;

static gbx_status make_row(const void *context, uint64_t number, void *out_row) {
    const source *from = context;
    return read_again(from->report, &from->kept->records[number], out_row);
}

/* What differs, or else what is in only one dump, or else what is near. */
static gbx_status print_table(const gbx_diff_report *report, const gbx_diff_result *result) {
    gbx_sink *sink = report->sink;
    const uint64_t *counts = result->counts;
    uint64_t single = counts[GBX_DIFF_ONLY_A] + counts[GBX_DIFF_ONLY_B];
    gbx_diff_verdict shown = counts[GBX_DIFF_DIFFERENT] > 0 ? GBX_DIFF_DIFFERENT
                             : single > 0                   ? GBX_DIFF_ONLY_A
                                                            : GBX_DIFF_WITHIN;
    const source from = {report, &report->kept[shown]};
    uint64_t more = (shown == GBX_DIFF_ONLY_A ? single : counts[shown]) - from.kept->count;
    row made;
    GBX_TRY(
        gbx_rows_print(sink, GBX_ROWS_MADE(columns, &from, from.kept->count, make_row, &made), 1));
    single = shown == GBX_DIFF_DIFFERENT ? single : 0;
    gbx_sink_more(sink, "", more, 0, "");
    if (single > 0)
        gbx_sink_print(sink, "%s %s in only one dump", more > 0 ? "," : "and",
                       gbx_text_count(&sink->texts, single));
    if (more + single > 0)
        gbx_sink_print(sink, "; --json has all\n");
    return NULL;
}

/* --- text: the rest --- */

static gbx_status print_gaps(const gbx_diff_report *report, const gbx_diff_result *result) {
    gbx_sink *sink = report->sink;
    row first;
    for (uint32_t i = 0; i < GBX_DIFF_REASON_COUNT; ++i) {
        if (!gbx_diff_reason_is_gap((gbx_diff_reason)i) || result->reasons[i] == 0)
            continue;
        GBX_TRY(read_again(report, &report->gaps[i], &first));
        gbx_sink_print(sink, "not compared: %s, %s; the first: %s\n",
                       gbx_text_count(&sink->texts, result->reasons[i]),
                       gbx_name_sentence(&gbx_diff_reasons, i),
                       gbx_text_shown(&sink->texts, first.place));
    }
    return NULL;
}

static void print_counts(gbx_sink *sink, const gbx_diff_result *result) {
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink, "compared %s: ", gbx_text_count(t, result->compared));
    for (uint32_t i = 0; i < GBX_DIFF_VERDICT_COUNT; ++i)
        gbx_sink_print(sink, "%s%s %s",
                       i == 0                    ? ""
                       : i <= GBX_DIFF_DIFFERENT ? ", "
                                                 : "; ",
                       gbx_text_count(t, result->counts[i]),
                       gbx_name_sentence(&gbx_diff_verdicts, i));
    gbx_sink_print(sink, "\n");
    if (result->tasks_different > 1)
        gbx_sink_print(sink, "%s differ, %s introduced a difference%s%s\n",
                       gbx_text_counted(t, result->tasks_different, "task"),
                       gbx_text_count(t, result->tasks_introduced),
                       result->tasks_unknown > 0 ? ", unclear: " : "",
                       result->tasks_unknown > 0 ? gbx_text_count(t, result->tasks_unknown) : "");
}

static void print_notes(gbx_sink *sink, const gbx_diff_result *result) {
    gbx_sink_count(sink, "truncated: only the beginning of ", result->truncated, "entry",
                   " was compared");
    if (result->matching == GBX_DIFF_BY_TASK_ID)
        gbx_sink_print(sink, "tasks are matched by task_id, because a dump does not number them\n");
    if (result->matching == GBX_DIFF_BY_ORDER)
        gbx_sink_print(sink, "tasks are matched in the order in which they appear, because a dump "
                             "does not number them and their ids do not match\n");
    gbx_sink_count(sink, "left out: ", result->bad_edges, "edge", " to no task or in a cycle");
}

static gbx_status print_text(const gbx_diff_report *report, const gbx_diff_result *result) {
    gbx_sink *sink = report->sink;
    const char *graph;
    bool is_graph_first = !result->has_first || result->is_graph_first;
    GBX_TRY(graph_text(report, result, &graph));
    if (graph && is_graph_first)
        gbx_sink_print(sink, "%s\n", gbx_text_shown(&sink->texts, graph));
    if (result->has_first)
        GBX_TRY(print_first(report, result));
    else
        print_alike(report, result);
    if (graph && !is_graph_first)
        gbx_sink_print(sink, "%s\n", gbx_text_shown(&sink->texts, graph));
    GBX_TRY(print_table(report, result));
    print_counts(sink, result);
    GBX_TRY(print_gaps(report, result));
    print_notes(sink, result);
    gbx_sink_print(sink, "A: ");
    gbx_dump_print_head(sink, &report->dumps->a);
    gbx_sink_print(sink, "B: ");
    gbx_dump_print_head(sink, &report->dumps->b);
    return NULL;
}

/* --- JSON --- */

static void put_record(const gbx_diff_report *report, const gbx_diff_record *record) {
    gbx_json_writer *json = &report->sink->json;
    row r;
    fill_row(report, record, &r);
    gbx_json_begin_object_inline(json);
    gbx_json_put_row(json, GBX_ROWS(record_fields, &r, 1));
    if (record->reason == GBX_DIFF_KIND || record->reason == GBX_DIFF_DTYPE ||
        record->reason == GBX_DIFF_SHAPE)
        gbx_json_put_row(json, GBX_ROWS(other_fields, &r, 1));
    gbx_json_put_row(json, GBX_ROWS(metric_fields, &r, 1));
    gbx_json_end_object(json);
}

#define COUNTED(member, key) GBX_FIELD(gbx_diff_result, member, COUNT, key, NULL)
static const gbx_field count_fields[] = {COUNTED(tasks_different, "tasks_different"),
                                         COUNTED(tasks_introduced, "tasks_introduced"),
                                         COUNTED(tasks_unknown, "tasks_unknown"),
                                         COUNTED(truncated, "truncated"),
                                         COUNTED(hashed, "equal_by_hash"),
                                         COUNTED(read_bytes, "bytes_read"),
                                         GBX_FIELD(gbx_diff_result, matching, NAME,
                                                   "tasks_matched_by", NULL,
                                                   .names = &gbx_diff_matchings),
                                         COUNTED(bad_edges, "bad_edges")};

static void put_counts(gbx_json_writer *json, const gbx_diff_result *result) {
    gbx_json_put_u64(json, "compared", result->compared);
    for (uint32_t i = 0; i < GBX_DIFF_VERDICT_COUNT; ++i)
        gbx_json_put_u64(json, gbx_name_of(&gbx_diff_verdicts, i), result->counts[i]);
    gbx_json_key(json, "not_compared_reasons");
    gbx_json_begin_object_inline(json);
    for (uint32_t i = 0; i < GBX_DIFF_REASON_COUNT; ++i)
        if (gbx_diff_reason_is_gap((gbx_diff_reason)i))
            gbx_json_put_u64(json, gbx_name_of(&gbx_diff_reasons, i), result->reasons[i]);
    gbx_json_end_object(json);
    gbx_json_put_row(json, GBX_ROWS(count_fields, result, 1));
}

static gbx_status put_first(const gbx_diff_report *report, const gbx_diff_result *result) {
    gbx_json_writer *json = &report->sink->json;
    const char *why;
    row first;
    gbx_json_key(json, "first");
    if (!result->has_first) {
        gbx_json_null(json);
        return NULL;
    }
    GBX_TRY(why_text(report, result, &why));
    GBX_TRY(read_again(report, &result->first, &first));
    first.why = why;
    gbx_json_begin_object(json);
    gbx_json_put_row(json, GBX_ROWS(first_fields, &first, 1));
    gbx_json_end_object(json);
    return NULL;
}

static gbx_status put_result(const gbx_diff_report *report, const gbx_diff_result *result) {
    gbx_json_writer *json = &report->sink->json;
    const char *graph;
    gbx_json_end_array(json);
    put_counts(json, result);
    GBX_TRY(put_first(report, result));
    GBX_TRY(graph_text(report, result, &graph));
    gbx_json_put_string(json, "graphs_differ", graph);
    return NULL;
}

/* --- a report --- */

void gbx_diff_report_begin(gbx_sink *sink, const gbx_diff_dumps *dumps, bool as_json,
                           gbx_diff_report *out_report) {
    *out_report = (gbx_diff_report){.sink = sink, .dumps = dumps, .as_json = as_json};
    if (!as_json)
        return;
    gbx_json_writer *json = gbx_sink_json_begin(sink);
    gbx_json_put_string(json, "a", dumps->a.directory);
    gbx_json_put_string(json, "b", dumps->b.directory);
    gbx_json_key(json, "records");
    gbx_json_begin_array(json);
}

void gbx_diff_report_add(gbx_diff_report *report, const gbx_diff_record *record) {
    gbx_diff_verdict verdict = record->verdict;
    gbx_diff_kept *kept = &report->kept[verdict == GBX_DIFF_ONLY_B ? GBX_DIFF_ONLY_A : verdict];
    gbx_diff_record *place = NULL;
    if (report->as_json) {
        if (!gbx_json_has_failed(&report->sink->json)) /* the end returns why */
            put_record(report, record);
    } else if (verdict == GBX_DIFF_NOT_COMPARED) {
        bool is_first = report->gaps[record->reason].verdict != GBX_DIFF_NOT_COMPARED;
        place = is_first ? &report->gaps[record->reason] : NULL;
    } else if (kept->count < GBX_DIFF_LINES_MAX) {
        place = &kept->records[kept->count++];
    }
    if (!place)
        return;
    *place = *record;
    place->a = place->b = NULL;
}

gbx_status gbx_diff_report_end(gbx_diff_report *report, const gbx_diff_result *result,
                               gbx_status status) {
    if (!report->as_json)
        return status ? status : print_text(report, result);
    if (!status)
        status = put_result(report, result);
    return gbx_sink_json_end(report->sink, status);
}
