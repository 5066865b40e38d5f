#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "report/reports.h"
#include "report/table.h"

enum { LINES_MAX = 20 };

/* --- what a dump itself says is missing --- */

/* A loss, or a task or argument that was skipped. */
typedef struct gap {
    uint64_t task; /* of a loss: the first */
    bool has_task;
    uint32_t slot;
    bool has_slot;
    uint32_t stage; /* of a loss, like the next two */
    uint32_t cause;
    uint64_t count;
    uint32_t result;    /* the argument of the run whose result was lost... */
    bool is_result;     /* ...if it is one */
    bool is_least;      /* of a loss: how many more there were is unknown */
    const char *kernel; /* of what was skipped; NULL where it is unknown */
    const char *reason; /* a sentence */
} gap;

static const gbx_field loss_fields[] = {
    GBX_FIELD_IF(gap, has_task, task, NUMBER, "task_seq", NULL),
    GBX_FIELD_IF(gap, has_slot, slot, NUMBER, "arg_index", NULL),
    GBX_FIELD(gap, stage, NAME, "stage", NULL, .names = &gbx_stages),
    GBX_FIELD(gap, cause, NAME, "cause", NULL, .names = &gbx_loss_causes),
    GBX_FIELD(gap, count, COUNT, "count", NULL),
    GBX_FIELD_IF(gap, is_result, result, NUMBER, "result", NULL),
    GBX_FIELD(gap, is_least, BOOL, "is_least", NULL)};

static const gbx_field skipped_fields[] = {
    GBX_FIELD_IF(gap, has_task, task, NUMBER, "task_seq", NULL),
    GBX_FIELD_IF(gap, has_slot, slot, NUMBER, "arg_index", NULL),
    GBX_FIELD(gap, kernel, STRING, "kernel", NULL), GBX_FIELD(gap, reason, STRING, "reason", NULL)};

/* The list that gaps are read from. */
typedef struct gap_list {
    gbx_reader *reader;
    gbx_reader_list list;
} gap_list;

static gbx_status read_gap(const void *context, uint64_t number, void *out_row) {
    const gap_list *from = context;
    const gbx_record *record;
    gap *out_gap = out_row;
    GBX_TRY(gbx_reader_list_at(from->reader, from->list, number, &record));
    *out_gap = (gap){.task = record->task,
                     .has_task = true,
                     .slot = record->arg_index,
                     .has_slot = record->arg_index != GBX_ARG_NONE,
                     .stage = record->stage};
    if (from->list == GBX_LIST_LOSSES) {
        const gbx_record_loss *loss = (const gbx_record_loss *)(const void *)record;
        out_gap->has_task = out_gap->has_slot || record->stage != GBX_STAGE_NONE;
        out_gap->cause = loss->cause;
        out_gap->count = loss->count;
        out_gap->result = gbx_record_lost_result(loss);
        out_gap->is_result = out_gap->result != GBX_ARG_NONE;
        out_gap->is_least = loss->is_least != 0;
        out_gap->reason = gbx_name_sentence(&gbx_loss_causes, loss->cause);
    } else {
        const gbx_record_skipped *skipped = (const gbx_record_skipped *)(const void *)record;
        const gbx_run_kernel *kernel =
            gbx_run_info_kernel(gbx_reader_run(from->reader), skipped->func_id);
        out_gap->kernel = kernel ? kernel->name : NULL;
        out_gap->reason = gbx_name_sentence(&gbx_skip_reasons, gbx_record_skip_reason(skipped));
    }
    return NULL;
}

static void print_gap(gbx_sink *sink, bool is_loss, const gap *g) {
    const char *stage = is_loss ? gbx_name_of(&gbx_stages, g->stage) : NULL;
    if (is_loss)
        gbx_sink_print(sink, "lost: %s%s", g->is_least ? "at least " : "",
                       gbx_text_counted(&sink->texts, g->count, "record"));
    if (g->has_task)
        gbx_sink_print(sink, is_loss ? ", the first of task %" PRIu64 : "skipped: task %" PRIu64,
                       g->task);
    if (!is_loss)
        gbx_sink_print(sink, ", kernel %s",
                       gbx_text_shown(&sink->texts, g->kernel ? g->kernel : "unknown"));
    if (g->is_result)
        gbx_sink_print(sink, ", the result of argument %" PRIu32 " of the run", g->result);
    if (g->has_slot)
        gbx_sink_print(sink, ", arg %" PRIu32, g->slot);
    gbx_sink_print(sink, "%s%s: %s\n", stage ? ", " : "", stage ? stage : "", g->reason);
}

static gbx_status print_gaps(gbx_sink *sink, gbx_reader *reader, gbx_reader_list list) {
    const gap_list from = {reader, list};
    bool is_loss = list == GBX_LIST_LOSSES;
    uint64_t count = gbx_reader_list_count(reader, list);
    gap g;
    for (uint64_t i = 0; i < count && i < LINES_MAX; ++i) {
        GBX_TRY(read_gap(&from, i, &g));
        print_gap(sink, is_loss, &g);
    }
    gbx_sink_more(sink, is_loss ? "lost: " : "skipped: ", count, LINES_MAX,
                  " lines; --json has all\n");
    return NULL;
}

/* --- text --- */

static void print_verdict(gbx_sink *sink, const gbx_verification *v, const char *directory) {
    gbx_texts *t = &sink->texts;
    uint64_t dispatches = gbx_reader_get_totals(v->reader)->dispatches;
    uint64_t results = gbx_reader_get_totals(v->reader)->results;
    size_t wrong = v->findings.count;
    if (wrong > 0)
        gbx_sink_print(sink, "bad: %s in %s (", gbx_text_counted(t, wrong, "problem"),
                       gbx_text_shown(t, directory));
    else
        gbx_sink_print(sink, "good: ");
    gbx_sink_print(sink, "%s, %s of payload", gbx_text_counted(t, v->records, "entry"),
                   gbx_text_bytes(t, v->payload_bytes));
    if (dispatches > 0)
        gbx_sink_print(sink, ", %s", gbx_text_counted(t, dispatches, "dispatch"));
    if (results > 0)
        gbx_sink_print(sink, ", %s", gbx_text_counted(t, results, "result"));
    if (wrong > 0)
        gbx_sink_print(sink, ")\n");
    else
        gbx_sink_print(sink, ", every hash, size and count %sholds\n",
                       gbx_reader_get_origin(v->reader)->is_journal ? "" : "in the manifest ");
}

/* A run that did not end well, and tensors without bytes. */
static void print_state(gbx_sink *sink, const gbx_verification *v) {
    const gbx_reader *reader = v->reader;
    if (!(gbx_reader_get_origin(reader)->known & GBX_KNOWN_STATUS))
        gbx_sink_print(sink, "the manifest does not say how the run ended\n");
    else if (gbx_reader_end(reader) &&
             !(gbx_reader_is_complete(reader) && gbx_reader_has_ended_well(reader)))
        gbx_sink_print(sink, "%s: %s\n",
                       gbx_reader_is_complete(reader) ? "the run failed" : "not complete",
                       gbx_text_shown(&sink->texts, gbx_reader_end_text(reader)));
    gbx_sink_count(sink, "no payload: the hashes of ", v->unhashed_tensors, "tensor",
                   " were not checked");
}

/* What a dump without journal leaves open. */
static void print_unchecked(gbx_sink *sink, const gbx_verification *v) {
    const char *manifest = gbx_reader_get_origin(v->reader)->records_path;
    char beside[PATH_MAX];
    const char *slash = strrchr(manifest, '/');
    if (gbx_reader_get_origin(v->reader)->is_journal)
        return;
    if (!gbx_reader_end(v->reader))
        gbx_sink_print(sink, "not complete: the run was killed\n");
    gbx_sink_print(sink, "no journal: read from %s\n", gbx_text_shown(&sink->texts, manifest));
    snprintf(beside, sizeof beside, "%.*s/kernel_args_dump.json",
             slash ? (int)(slash - manifest) : 0, manifest);
    if (slash && access(beside, F_OK) == 0)
        gbx_sink_print(sink, "not checked: kernel_args_dump.json and args_dump.json, because there "
                             "is no journal to compare them with\n");
    gbx_sink_count(sink, "no hashes: the bytes of ", v->unchecked_tensors, "tensor",
                   " were not checked");
}

static gbx_status print_text(gbx_sink *sink, const gbx_verification *v, const char *directory) {
    print_verdict(sink, v, directory);
    gbx_findings_print(sink, &v->findings, "; --json has all\n");
    print_state(sink, v);
    print_unchecked(sink, v);
    GBX_TRY(print_gaps(sink, v->reader, GBX_LIST_LOSSES));
    GBX_TRY(print_gaps(sink, v->reader, GBX_LIST_SKIPPED));
    gbx_sink_count(sink, "not checked: ", gbx_reader_get_extent(v->reader)->newer_count, "record",
                   " of types newer than this version");
    if (v->can_be_recovered)
        gbx_sink_print(sink,
                       "glassbox recover %s keeps what is readable and writes what is missing\n",
                       gbx_text_shown(&sink->texts, gbx_text_word(&sink->texts, directory)));
    return NULL;
}

/* --- JSON --- */

static const gbx_field finding_fields[] = {
    GBX_FIELD(gbx_finding, kind, NAME, "kind", NULL, .names = &gbx_finding_kinds),
    GBX_FIELD_IF(gbx_finding, has_place, place.index, NUMBER, "index", NULL),
    GBX_FIELD_IF(gbx_finding, has_place, place.task, NUMBER, "task_seq", NULL),
    GBX_FIELD(gbx_finding, kernel, STRING, "kernel", NULL),
    GBX_FIELD_IF(gbx_finding, has_place, place.arg_index, NUMBER, "arg_index", NULL),
    GBX_FIELD_IF(gbx_finding, has_place, place.stage, NAME, "stage", NULL, .names = &gbx_stages),
    GBX_FIELD(gbx_finding, what, STRING, "what", NULL),
    GBX_FIELD(gbx_finding, expected, STRING, "expected", NULL),
    GBX_FIELD(gbx_finding, got, STRING, "got", NULL)};

static gbx_status print_json(gbx_sink *sink, const gbx_verification *v, const char *directory) {
    gbx_json_writer *json = gbx_sink_json_begin(sink);
    const gbx_reader_totals *totals = gbx_reader_get_totals(v->reader);
    gap g;
    gbx_json_put_string(json, "dump", directory);
    gbx_json_put_bool(json, "good", v->findings.count == 0);
    gbx_json_put_bool(json, "complete", gbx_reader_is_complete(v->reader));
    gbx_json_put_string(json, "status",
                        gbx_reader_end(v->reader) ? gbx_reader_end_text(v->reader) : NULL);
    gbx_json_put_bool(json, "can_be_recovered", v->can_be_recovered);
    gbx_json_put_u64(json, "records", v->records);
    gbx_json_put_u64(json, "bytes", v->payload_bytes);
    gbx_json_put_u64(json, "stored_bytes", totals->stored_bytes);
    gbx_json_put_u64(json, "tasks", totals->tasks);
    gbx_json_put_u64(json, "dispatches", totals->dispatches);
    gbx_json_put_u64(json, "results", totals->results);
    gbx_json_put_u64(json, "hashed_records", v->hashed_records);
    gbx_json_put_u64(json, "tensors_without_payload", v->unhashed_tensors);
    gbx_json_put_u64(json, "tensors_without_hash", v->unchecked_tensors);
    gbx_json_put_u64(json, "newer_records", gbx_reader_get_extent(v->reader)->newer_count);
    gbx_json_put_bool(json, "has_journal", gbx_reader_get_origin(v->reader)->is_journal);
    gbx_json_put_rows(json, "bad", GBX_ROWS(finding_fields, v->findings.items, v->findings.count));
    gbx_json_put_rows(json, "losses",
                      GBX_ROWS_MADE(loss_fields, (&(const gap_list){v->reader, GBX_LIST_LOSSES}),
                                    gbx_reader_list_count(v->reader, GBX_LIST_LOSSES), read_gap,
                                    &g));
    gbx_json_put_rows(
        json, "skipped",
        GBX_ROWS_MADE(skipped_fields, (&(const gap_list){v->reader, GBX_LIST_SKIPPED}),
                      gbx_reader_list_count(v->reader, GBX_LIST_SKIPPED), read_gap, &g));
    return gbx_sink_json_end(sink, NULL);
}

gbx_status gbx_verification_print(gbx_sink *sink, const gbx_verification *verification,
                                  const char *directory, bool as_json) {
    return as_json ? print_json(sink, verification, directory)
                   : print_text(sink, verification, directory);
}
