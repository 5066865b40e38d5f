#include <inttypes.h>

#include "report/party.h"
#include "report/reports.h"
#include "report/table.h"

enum { SHOWN_MAX = 20 };

/* --- rows --- */

typedef struct finding_row {
    gbx_audit_finding of;
    gbx_party first;
    bool has_second;
    gbx_party second; /* of a result of the run only the tensor */
    const char *name; /* of the result; NULL */
    uint32_t arg_index;
    uint32_t role;
} finding_row;

static gbx_status find_result(const gbx_reporting *r, uint64_t position, finding_row *row) {
    gbx_result result;
    GBX_TRY(gbx_reader_result(r->dump->reader, position, &result));
    gbx_record_view(result.record, &row->second.tensor);
    row->name = result.name ? gbx_text_format(&r->sink->texts, "%s", result.name) : NULL;
    row->arg_index = result.arg_index;
    row->role = result.role;
    return NULL;
}

/* "out", "argument 3" */
static const char *result_text(gbx_texts *t, const finding_row *row) {
    return row->name ? gbx_text_shown(t, row->name)
                     : gbx_text_format(t, "argument %" PRIu32, row->arg_index);
}

static gbx_status find_finding(const gbx_reporting *r, const gbx_audit_finding *f,
                               finding_row *out_row) {
    gbx_party *const parties[] = {&out_row->first, &out_row->second};
    const gbx_audit_side *const sides[] = {&f->first, &f->second};
    *out_row = (finding_row){.of = *f, .has_second = !f->is_result};
    if (f->is_result)
        GBX_TRY(find_result(r, f->result, out_row));
    for (size_t i = 0; i < (f->is_result ? 1 : 2); ++i) {
        GBX_TRY(gbx_party_find(r, sides[i]->task, sides[i]->entry, parties[i]));
        parties[i]->begin = sides[i]->begin;
        parties[i]->end = sides[i]->end;
    }
    return NULL;
}

/* --- text: a finding --- */

static void print_claim(gbx_sink *sink, const finding_row *row) {
    gbx_texts *t = &sink->texts;
    const gbx_audit_finding *f = &row->of;
    const char *reader = f->is_result ? result_text(t, row) : gbx_text_party(t, &row->second);
    const char *writer = gbx_text_party(t, &row->first);
    switch (f->kind) {
    case GBX_AUDIT_UNDECLARED_WRITE:
        gbx_sink_print(sink, "undeclared write: %s does not hold what %s %s there\n", reader,
                       writer, f->is_seen ? "saw" : "left");
        break;
    case GBX_AUDIT_CHANGED_RESULT:
        gbx_sink_print(sink,
                       "changed result: at the end of the run, %s does not hold what %s %s there\n",
                       reader, writer, f->is_seen ? "saw" : "left");
        break;
    case GBX_AUDIT_READ_TOO_EARLY:
        gbx_sink_print(sink, "read too %s: ", f->is_read_first ? "late" : "early");
        if (!f->is_concurrent)
            gbx_sink_print(sink, "nothing orders %s %s %s, which writes it\n", reader,
                           f->is_read_first ? "before" : "after", writer);
        else if (f->is_read_first)
            gbx_sink_print(sink,
                           "%s must be read before %s is written; both ran at the same "
                           "time\n",
                           reader, writer);
        else
            gbx_sink_print(sink, "%s was read while %s was being written\n", reader, writer);
        break;
    case GBX_AUDIT_OVERLAPPING_WRITES:
    case GBX_AUDIT_KIND_COUNT:
        gbx_sink_print(sink, "overlapping writes: %s and %s %s\n", writer, reader,
                       f->is_concurrent ? "were written at the same time" : "are in no order");
        break;
    }
}

/* "within 64 bytes at 0x7e9000001000: bytes 128 to 191 of the buffer of argument 0 x of task 7" */
static void print_range(gbx_sink *sink, const finding_row *row) {
    gbx_texts *t = &sink->texts;
    const gbx_audit_finding *f = &row->of;
    gbx_sink_print(sink, "  within %s at 0x%" PRIx64 ": byte%s %" PRId64,
                   gbx_text_counted(t, f->bytes, "byte"), f->address,
                   gbx_text_verb(f->bytes, "", "s"), f->second.begin);
    if (f->bytes > 1)
        gbx_sink_print(sink, " to %" PRId64, f->second.end - 1);
    if (f->is_result) {
        gbx_sink_print(sink, " of %s\n", result_text(t, row));
        return;
    }
    gbx_sink_print(sink, " of the buffer of %s of task %" PRIu64 "\n",
                   gbx_text_party_argument(t, &row->second), f->second.task);
}

static const char *no_element_text(const gbx_audit_finding *f) {
    if (f->is_read_late)
        return "this time it was read after that had been written";
    if (f->is_read_first)
        return f->is_concurrent ? "unclear whether it read the old bytes"
                                : "this time it was read before that was written";
    if (!f->is_compared)
        return "not compared: the dump lacks bytes of one of them, or they lie in too many pieces";
    return f->kind == GBX_AUDIT_READ_TOO_EARLY ? "this time it read what was written in the end"
                                               : "this time both left the same bytes";
}

static void print_element(gbx_sink *sink, const finding_row *row) {
    gbx_texts *t = &sink->texts;
    const gbx_audit_finding *f = &row->of;
    if (!f->has_element) {
        gbx_sink_print(sink, "  %s\n", no_element_text(f));
        return;
    }
    const char *expected = gbx_text_value(t, f->dtype, f->expected);
    const char *found = gbx_text_value(t, f->dtype, f->found);
    gbx_sink_print(sink, "  first element that differs: %s",
                   gbx_text_index(t, &row->second.tensor, f->element));
    if (f->kind == GBX_AUDIT_OVERLAPPING_WRITES)
        gbx_sink_print(sink, ", task %" PRIu64 " left %s, task %" PRIu64 " %s\n", f->first.task,
                       expected, f->second.task, found);
    else
        gbx_sink_print(sink, ", expected %s, found %s\n", expected, found);
}

static gbx_status print_finding(const gbx_reporting *r, const gbx_audit_finding *f) {
    finding_row row;
    uint64_t from, to;
    GBX_TRY(find_finding(r, f, &row));
    print_claim(r->sink, &row);
    print_range(r->sink, &row);
    print_element(r->sink, &row);
    gbx_audit_missing_edge(f, &from, &to);
    if (f->has_no_path) /* the user knows which way, where both write */
        gbx_sink_print(r->sink,
                       f->kind == GBX_AUDIT_OVERLAPPING_WRITES
                           ? "  missing: an edge between task %" PRIu64 " and task %" PRIu64 "\n"
                           : "  missing: an edge from task %" PRIu64 " to task %" PRIu64 "\n",
                       from, to);
    if (f->kind != GBX_AUDIT_UNDECLARED_WRITE && !f->is_result)
        return NULL;
    if (!f->has_suspects) {
        gbx_sink_print(r->sink, "  suspects were not searched: there are too many findings\n");
        return NULL;
    }
    return gbx_suspects_print(r, f->suspects, f->suspect_count,
                              f->is_result ? "since" : "meanwhile");
}

/* --- text: all of it --- */

static void print_verdict(gbx_sink *sink, const gbx_audit *audit) {
    static const char *const lacks[] = {
        [GBX_AUDIT_LACKS_NOTHING] = "",
        [GBX_AUDIT_LACKS_END] = "the dump is not complete",
        [GBX_AUDIT_LACKS_ARGUMENTS] = "the dump may lack arguments of its tasks",
        [GBX_AUDIT_LACKS_SOME_OUTPUTS] = "the dump lacks outputs of some tasks"};
    gbx_texts *t = &sink->texts;
    const gbx_audit_counts *counts = &audit->counts;
    const char *missing = lacks[gbx_audit_find_lack(counts)];
    uint64_t all = counts->records + counts->in_flight, left_out = gbx_audit_left_out(counts);
    const char *records = gbx_text_counted(t, all, "entry");
    const char *tasks = gbx_text_counted(t, counts->tasks, "task");
    if (audit->finding_count > 0)
        gbx_sink_print(sink, "%s%s in %s of %s; the first:\n", counts->has_more ? "more than " : "",
                       gbx_text_counted(t, audit->finding_count, "finding"),
                       gbx_text_counted(t, counts->records, "entry"), tasks);
    else if (counts->records == 0)
        gbx_sink_print(sink, "nothing was audited: the dump has no tensors of completed tasks\n");
    else if (left_out > 0)
        gbx_sink_print(sink, "no findings, but %s of %s of %s could not be audited%s%s\n",
                       gbx_text_count(t, left_out), records, tasks, missing[0] ? ", and " : "",
                       missing);
    else
        gbx_sink_print(
            sink, "no findings%s%s: %s of %s do not contradict each other%s\n",
            missing[0] ? ", but " : "", missing, records, tasks,
            counts->results_incomplete > 0
                ? gbx_text_format(t, "; %s of the run could not be compared",
                                  gbx_text_counted(t, counts->results_incomplete, "result"))
                : "");
}

static void print_missing(gbx_sink *sink, const gbx_audit_counts *counts) {
    gbx_texts *t = &sink->texts;
    uint64_t inputs = counts->not_compared[GBX_GAP_MISSING_OUTPUTS];
    bool is_any = counts->missing_tasks == UINT64_MAX;
    const char *tasks = gbx_text_counted(t, is_any ? 0 : counts->missing_tasks, "task");
    gbx_sink_count(sink, "not audited: ", inputs, "input",
                   is_any ? ", because outputs that the dump lacks may have written them"
                          : gbx_text_format(t, ", because the dump lacks outputs of %s", tasks));
    if (!is_any && counts->missing_tasks > 0 && inputs == 0)
        gbx_sink_print(sink, "left out: outputs of %s that the dump lacks\n", tasks);
}

static void print_results(gbx_sink *sink, const gbx_audit_counts *counts) {
    gbx_texts *t = &sink->texts;
    if (counts->results == 0) {
        gbx_sink_print(sink, "results: the dump has none; --dump-tensor=full without a filter "
                             "records them\n");
        return;
    }
    gbx_sink_print(sink, "results: %s; compared with what their memory should hold: %s\n",
                   gbx_text_count(t, counts->results), gbx_text_count(t, counts->results_compared));
    gbx_sink_count(sink, "written at the same time: ", counts->results_raced, "result",
                   ", holding something else");
    gbx_sink_count(sink, "not audited, or not completely: ", counts->results_incomplete, "result",
                   ", because the dump lacks bytes or outputs");
    if (counts->result_unwritten > 0)
        gbx_sink_print(sink, "no task declares to write %s of the results%s\n",
                       gbx_text_counted(t, counts->result_unwritten, "byte"),
                       counts->result_unfilled > 0
                           ? gbx_text_format(t, "; %s are not what new memory is filled with",
                                             gbx_text_count(t, counts->result_unfilled))
                           : "");
}

/* What was not looked at, or less closely. */
static void print_notes(gbx_sink *sink, const gbx_audit_counts *counts) {
    static const char pieces[] = ", because their views lie in too many pieces";
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink,
                   "inputs: %s; compared with what their memory should hold: %s; first to read "
                   "it: %s\n",
                   gbx_text_count(t, counts->inputs), gbx_text_count(t, counts->compared),
                   gbx_text_count(t, counts->first_reads));
    gbx_sink_count(sink, "read too early: ", counts->raced, "input", ", holding something else");
    if (counts->unread > 0)
        gbx_sink_print(sink,
                       "outputs: %s; %s neither read later nor part of a result: a change of %s is "
                       "not seen\n",
                       gbx_text_count(t, counts->outputs), gbx_text_count(t, counts->unread),
                       gbx_text_verb(counts->unread, "it", "these"));
    print_results(sink, counts);
    print_missing(sink, counts);
    gbx_sink_count(sink, "not audited: ", counts->not_compared[GBX_GAP_NO_BYTES], "input",
                   ", because the dump lacks bytes of them or of what was there");
    gbx_sink_count(sink, "not audited: ", counts->not_compared[GBX_GAP_PIECES], "input", pieces);
    gbx_sink_count(sink, "not audited: ", counts->unfollowed, "output", pieces);
    gbx_sink_count(sink, "left out: ", counts->in_flight, "entry",
                   " of tasks that did not complete");
    gbx_sink_count(sink, "left out: ", counts->damaged, "entry",
                   " whose hashes no longer match; run glassbox verify");
    gbx_sink_count(sink, "left out: ", counts->bad_edges, "edge", " to no task or in a cycle");
    if (!counts->has_edges)
        gbx_sink_print(sink, "order: by the times of this run, because the dump lacks edges\n");
}

static gbx_status print_text(const gbx_reporting *r, const gbx_audit *audit) {
    size_t shown = audit->finding_count < SHOWN_MAX ? audit->finding_count : SHOWN_MAX;
    bool is_missing = false;
    print_verdict(r->sink, audit);
    for (size_t i = 0; i < shown; ++i)
        GBX_TRY(print_finding(r, &audit->findings[i]));
    for (uint32_t kind = 0; kind < GBX_AUDIT_KIND_COUNT; ++kind) {
        uint64_t more = 0;
        for (size_t i = shown; i < audit->finding_count; ++i)
            more += audit->findings[i].kind == (gbx_audit_kind)kind;
        gbx_sink_more(r->sink, "", more, 0,
                      gbx_text_format(&r->sink->texts, " %s (--json has %s)\n",
                                      gbx_name_sentence(&gbx_audit_kinds, kind),
                                      audit->counts.has_more ? "these" : "all"));
    }
    /* In a group without order not every pair is listed. */
    for (size_t i = 0; i < audit->finding_count; ++i)
        is_missing |= audit->findings[i].has_no_path;
    if (is_missing && !audit->counts.has_more)
        gbx_sink_print(r->sink, "the missing edges that all findings name are enough to order "
                                "everything that was audited\n");
    print_notes(r->sink, &audit->counts);
    return NULL;
}

/* --- JSON --- */

#define FINDING(member, kind, key, ...) GBX_FIELD(finding_row, member, kind, key, NULL, __VA_ARGS__)
static const gbx_field range_fields[] = {
    FINDING(of.address, HEX, "address"), FINDING(of.bytes, COUNT, "bytes"),
    FINDING(of.second.begin, I64, "begin"), FINDING(of.second.end, I64, "end")};
static const gbx_field result_fields[] = {FINDING(name, STRING, "name"),
                                          FINDING(arg_index, NUMBER, "arg_index"),
                                          FINDING(role, NAME, "role", .names = &gbx_roles)};
static const gbx_field element_fields[] = {
    FINDING(of.element, INDEX, "index", .with = offsetof(finding_row, second.tensor)),
    FINDING(of.dtype, DTYPE, "dtype"),
    FINDING(of.expected, ELEMENT, "expected", .with = offsetof(finding_row, of.dtype)),
    FINDING(of.found, ELEMENT, "found", .with = offsetof(finding_row, of.dtype))};
static const gbx_field finding_fields[] = {
    FINDING(of.kind, NAME, "kind", .names = &gbx_audit_kinds),
    FINDING(first, OBJECT, "first", GBX_MEMBERS(gbx_party_fields)),
    GBX_FIELD_IF(finding_row, has_second, second, OBJECT, "second", NULL,
                 GBX_MEMBERS(gbx_party_fields)),
    GBX_OBJECT("result", result_fields, GBX_KNOWN_IF(finding_row, of.is_result)),
    GBX_OBJECT("range", range_fields),
    GBX_OBJECT("element", element_fields, GBX_KNOWN_IF(finding_row, of.has_element)),
    FINDING(of.is_compared, BOOL, "compared"),
    FINDING(of.is_concurrent, BOOL, "concurrent"),
    FINDING(of.has_no_path, BOOL, "no_path"),
    FINDING(of.is_seen, BOOL, "seen"),
    FINDING(of.is_read_first, BOOL, "read_first"),
    FINDING(of.is_read_late, BOOL, "read_late"),
    FINDING(of.suspect_count, COUNT, "suspect_count")};

static gbx_status put_finding(const gbx_reporting *r, const gbx_audit_finding *f) {
    gbx_json_writer *json = &r->sink->json;
    finding_row row;
    GBX_TRY(find_finding(r, f, &row));
    gbx_json_begin_object(json);
    gbx_json_put_row(json, GBX_ROWS(finding_fields, &row, 1));
    GBX_TRY(gbx_suspects_put(r, f->suspects, f->suspect_count));
    gbx_json_end_object(json);
    return NULL;
}

#define COUNTED(member, key) GBX_FIELD(gbx_audit_counts, member, COUNT, key, NULL)
static const gbx_field gap_fields[] = {
    COUNTED(not_compared[GBX_GAP_MISSING_OUTPUTS], "missing_outputs"),
    COUNTED(not_compared[GBX_GAP_NO_BYTES], "no_bytes"),
    COUNTED(not_compared[GBX_GAP_PIECES], "pieces"), COUNTED(unfollowed, "outputs_in_pieces")};
static const gbx_field count_fields[] = {COUNTED(tasks, "tasks"),
                                         COUNTED(records, "records"),
                                         COUNTED(inputs, "inputs"),
                                         COUNTED(compared, "compared"),
                                         COUNTED(first_reads, "first_reads"),
                                         COUNTED(raced, "raced"),
                                         COUNTED(outputs, "outputs"),
                                         COUNTED(unread, "unread_outputs"),
                                         COUNTED(results, "results"),
                                         COUNTED(result_bytes, "result_bytes"),
                                         COUNTED(results_compared, "results_compared"),
                                         COUNTED(results_raced, "results_raced"),
                                         COUNTED(results_incomplete, "results_incomplete"),
                                         COUNTED(result_unwritten, "result_unwritten_bytes"),
                                         COUNTED(result_unfilled, "result_unfilled_bytes"),
                                         GBX_OBJECT("not_audited", gap_fields)};
static const gbx_field state_fields[] = {
    COUNTED(in_flight, "in_flight"), COUNTED(damaged, "damaged"), COUNTED(bad_edges, "bad_edges"),
    GBX_FIELD(gbx_audit_counts, is_complete, BOOL, "complete", NULL)};

static void put_counts(gbx_json_writer *json, const gbx_audit_counts *counts) {
    gbx_json_put_row(json, GBX_ROWS(count_fields, counts, 1));
    if (counts->missing_tasks == UINT64_MAX) /* it may be any */
        gbx_json_put_null(json, "tasks_missing_outputs");
    else
        gbx_json_put_u64(json, "tasks_missing_outputs", counts->missing_tasks);
    gbx_json_put_row(json, GBX_ROWS(state_fields, counts, 1));
    gbx_json_put_string(json, "order", counts->has_edges ? "edges" : "times");
    gbx_json_put_bool(json, "more_findings", counts->has_more);
}

static gbx_status print_json(const gbx_reporting *r, const gbx_audit *audit) {
    gbx_json_writer *json = gbx_sink_json_begin(r->sink);
    gbx_status status = NULL;
    gbx_json_put_string(json, "dump", r->dump->directory);
    put_counts(json, &audit->counts);
    gbx_json_key(json, "findings");
    gbx_json_begin_array(json);
    for (size_t i = 0; i < audit->finding_count && !status && !gbx_json_has_failed(json); ++i)
        status = put_finding(r, &audit->findings[i]);
    if (!status)
        gbx_json_end_array(json);
    return gbx_sink_json_end(r->sink, status);
}

gbx_status gbx_audit_print(gbx_sink *sink, const gbx_opened_dump *dump, const char *given,
                           const gbx_audit *audit, bool as_json) {
    const gbx_reporting r = {sink, dump, given};
    return as_json ? print_json(&r, audit) : print_text(&r, audit);
}
