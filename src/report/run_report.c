#include <assert.h>
#include <inttypes.h>

#include "report/ending.h"
#include "report/reports.h"
#include "report/table.h"

static const gbx_name verdicts[] = {
    [GBX_VERDICT_OK] = {"ok", "ok", NULL},
    [GBX_VERDICT_DIFFERS] = {"differs", "DIFFERS", NULL},
    [GBX_VERDICT_FAILED] = {"failed", "failed", NULL},
    [GBX_VERDICT_NOT_COMPARED] = {"not_compared", "not compared", NULL}};
static const gbx_name_set verdict_names = {verdicts, sizeof verdicts / sizeof verdicts[0]};

void gbx_run_report_begin(gbx_sink *sink, const gbx_run_layout *layout,
                          gbx_run_report *out_report) {
    *out_report = (gbx_run_report){.sink = sink, .layout = *layout};
    for (size_t i = 0; i < layout->case_count; ++i) {
        size_t width = gbx_text_width(layout->cases[i]->name);
        out_report->name_width = width > out_report->name_width ? width : out_report->name_width;
    }
}

/* --- text --- */

static void print_output(gbx_sink *sink, const gbx_output_result *output) {
    gbx_texts *t = &sink->texts;
    const gbx_comparison *c = &output->comparison;
    const gbx_tensor *tensor = &output->arg->tensor;
    const char *name = gbx_text_shown(t, output->arg->name);
    const char *max_abs = gbx_text_real(t, c->max_abs, 3);
    const char *max_rel = gbx_text_real(t, c->max_rel, 3);
    if (c->mismatches == 0)
        gbx_sink_print(sink, "  %s: ok, max abs %s, max rel %s\n", name, max_abs, max_rel);
    else
        gbx_sink_print(sink,
                       "  %s: %" PRIu64 " of %" PRIu64 " elements differ, max abs %s, max rel %s, "
                       "first at %s: got %s, want %s\n",
                       name, c->mismatches, c->elements, max_abs, max_rel,
                       gbx_text_index(t, tensor, c->first_bad.index),
                       gbx_text_element(t, tensor->dtype, c->first_bad.got_bits),
                       gbx_text_element(t, tensor->dtype, c->first_bad.want_bits));
}

/* "; 3 records LOST", where there are any. */
static void print_some(gbx_sink *sink, uint64_t count, const char *one, const char *many) {
    if (count > 0)
        gbx_sink_print(sink, "; %s %s", gbx_text_count(&sink->texts, count),
                       gbx_text_verb(count, one, many));
}

/* Where the dump is, what is in it ("3 entries, 3.2 MiB (1.1 MiB stored)", "12 dispatches" or both;
 * those in flight count, as in view and verify), and what is missing. */
static void print_dump(gbx_sink *sink, const gbx_round_result *result) {
    gbx_texts *t = &sink->texts;
    const gbx_dump_totals *totals = &result->totals;
    uint64_t entries = totals->records + totals->in_flight;
    bool has_entries = entries > 0 || totals->dispatches == 0;
    gbx_sink_print(sink, "dump  %s: ", gbx_text_shown(t, result->dump));
    if (has_entries)
        gbx_sink_print(sink, "%s, %s", gbx_text_counted(t, entries, "entry"),
                       gbx_text_bytes(t, totals->payload_bytes));
    if (has_entries && totals->stored_bytes != totals->payload_bytes)
        gbx_sink_print(sink, " (%s stored)", gbx_text_bytes(t, totals->stored_bytes));
    if (totals->dispatches)
        gbx_sink_print(sink, "%s%s", has_entries ? ", " : "",
                       gbx_text_counted(t, totals->dispatches, "dispatch"));
    print_some(sink, totals->dropped, "record LOST", "records LOST");
    print_some(sink, totals->skipped, "argument or task skipped", "arguments or tasks skipped");
    print_some(sink, totals->truncated, "tensor truncated", "tensors truncated");
    print_some(sink, totals->in_flight, "output of a task that did not complete",
               "outputs of tasks that did not complete");
    if (totals->stall_ns)
        gbx_sink_print(sink, "; waited %s for room", gbx_text_ns(t, totals->stall_ns));
    gbx_sink_print(sink, "\n");
}

/* --- who wrote the first wrong element --- */

static const gbx_output_result *find_wrong(const gbx_round_result *result) {
    for (size_t i = 0; result->dump && i < result->output_count; ++i)
        if (result->outputs[i].is_compared && result->outputs[i].comparison.mismatches > 0)
            return &result->outputs[i];
    return NULL;
}

/* Opens the dump, which is closed by the caller, and asks it. */
static gbx_status ask_blame(gbx_sink *sink, const gbx_round_result *result,
                            const gbx_output_result *wrong, gbx_opened_dump *out_dump,
                            gbx_blame_report *out_blame) {
    gbx_texts *t = &sink->texts;
    GBX_TRY(gbx_opened_dump_open(result->dump, GBX_INDEX_GRAPH, out_dump));
    const char *element = gbx_text_join(
        t, wrong->arg->name, "",
        wrong->arg->tensor.ndims > 0
            ? gbx_text_index(t, &wrong->arg->tensor, wrong->comparison.first_bad.index)
            : "");
    return gbx_blame_report_make(out_dump, element, 0, NULL, out_blame);
}

static void print_blame(gbx_sink *sink, const gbx_round_result *result) {
    const gbx_output_result *wrong = find_wrong(result);
    gbx_opened_dump dump = {0};
    gbx_blame_report blame = {0};
    if (!wrong)
        return;
    gbx_status status = ask_blame(sink, result, wrong, &dump, &blame);
    if (!status)
        status = gbx_blame_print_line(sink, &dump, result->dump, &blame);
    if (status)
        gbx_sink_print(sink, "  not known: who wrote the first wrong element of %s: %s\n",
                       gbx_text_shown(&sink->texts, wrong->arg->name),
                       gbx_text_shown(&sink->texts, gbx_status_message(status)));
    gbx_status_free(status);
    gbx_blame_inputs_free(&blame.inputs);
    gbx_opened_dump_close(&dump);
}

/* "blame" is null where nothing is wrong, or the dump does not say. */
static void put_blame(gbx_sink *sink, const gbx_round_result *result) {
    const gbx_output_result *wrong = find_wrong(result);
    gbx_opened_dump dump = {0};
    gbx_blame_report blame = {0};
    gbx_status status = wrong ? ask_blame(sink, result, wrong, &dump, &blame) : NULL;
    if (wrong && !status) {
        gbx_json_key(&sink->json, "blame");
        gbx_json_begin_object(&sink->json);
        status = gbx_blame_put(sink, &dump, result->dump, &blame);
        gbx_json_end_object(&sink->json);
    } else {
        gbx_json_put_null(&sink->json, "blame");
    }
    gbx_status_free(status);
    gbx_blame_inputs_free(&blame.inputs);
    gbx_opened_dump_close(&dump);
}

/* --- what is wrong --- */

static bool is_wrong(const gbx_round_result *result) {
    return result->verdict == GBX_VERDICT_DIFFERS || result->finding_count > 0 ||
           (result->verdict == GBX_VERDICT_FAILED && !result->is_refused);
}

bool gbx_run_needs_diagnosis(const gbx_round_result *result) {
    return is_wrong(result) && result->dump &&
           (result->totals.records > 0 || result->totals.in_flight > 0);
}

bool gbx_run_can_be_diagnosed(const gbx_round_result *result) {
    return result->dump && (is_wrong(result) || result->is_refused);
}

static const char *diagnose_text(gbx_texts *t, const gbx_round_result *result) {
    return gbx_text_format(t, "glassbox diagnose %s", gbx_text_word(t, result->dump));
}

/* "950", "85.3k", "1.2M" */
static const char *rate_text(gbx_texts *t, double rate) {
    if (rate >= 1e6)
        return gbx_text_format(t, "%.1fM", rate * 1e-6);
    if (rate >= 1e3)
        return gbx_text_format(t, "%.1fk", rate * 1e-3);
    return gbx_text_format(t, "%.0f", rate);
}

static void print_result(gbx_run_report *report, const gbx_round_result *result) {
    gbx_sink *sink = report->sink;
    gbx_texts *t = &sink->texts;
    size_t width = gbx_text_width(result->of_case->name);
    double rate = result->seconds > 0.0 ? (double)result->tasks / result->seconds : 0.0;
    gbx_sink_print(sink, "%s%*s  ", gbx_text_shown(t, result->of_case->name),
                   (int)(report->name_width - width), "");
    if (report->layout.options->rounds > 1)
        gbx_sink_print(sink, "round %" PRIu32 " of %" PRIu32 "  ", result->round,
                       report->layout.options->rounds);
    if (result->verdict != GBX_VERDICT_FAILED)
        gbx_sink_print(sink, "%8s  %7" PRIu64 " %s  %6s tasks/s  ",
                       gbx_text_ns(t, (uint64_t)(result->seconds * 1e9)), result->tasks,
                       gbx_text_verb(result->tasks, "task ", "tasks"), rate_text(t, rate));
    gbx_sink_print(sink, "%s", gbx_name_brief(&verdict_names, result->verdict));
    print_some(sink, result->finding_count, "FINDING", "FINDINGS");
    gbx_sink_print(sink, "\n");
    for (size_t i = 0; i < result->output_count; ++i)
        if (result->outputs[i].is_compared &&
            (report->layout.is_verbose || result->outputs[i].comparison.mismatches > 0))
            print_output(sink, &result->outputs[i]);
    for (size_t i = 0; i < result->findings_kept; ++i)
        gbx_sink_print(sink, "finding: %s\n", gbx_text_shown(t, result->findings[i].text));
    gbx_sink_more(sink, "finding: ", result->finding_count, result->findings_kept, "\n");
    print_blame(sink, result);
    if (result->dump)
        print_dump(sink, result);
    if (gbx_run_needs_diagnosis(result) && !report->layout.diagnoses)
        gbx_sink_print(sink, "next: %s\n", gbx_text_shown(t, diagnose_text(t, result)));
    if (is_wrong(result) && !result->dump)
        gbx_sink_print(sink, "next: run it again with --diagnose\n");
    fflush(sink->out);
}

/* --- JSON --- */

static const gbx_field total_fields[] = {
#define TOTAL(name) GBX_FIELD(gbx_dump_totals, name, COUNT, #name, NULL)
    TOTAL(records),
    TOTAL(tensors),
    TOTAL(dispatches),
    TOTAL(payload_bytes),
    TOTAL(stored_bytes),
    TOTAL(deduplicated),
    TOTAL(truncated),
    TOTAL(in_flight),
    TOTAL(dropped),
    TOTAL(skipped),
    TOTAL(stall_ns),
    TOTAL(longest_capture_ns),
    TOTAL(unmatched_filters),
    TOTAL(results),
    TOTAL(result_payload_bytes),
    TOTAL(result_stored_bytes)};
static_assert(sizeof(gbx_dump_totals) ==
                  sizeof total_fields / sizeof total_fields[0] * sizeof(uint64_t),
              "every total is written");

typedef struct output_row {
    const char *name;
    bool is_compared; /* what was not compared is null, not right */
    bool is_ok;
    gbx_comparison comparison;
    gbx_tensor tensor;
    char hash[GBX_HASH_TEXT_BYTES];
} output_row;

static const gbx_field output_fields[] = {
    GBX_FIELD(output_row, name, STRING, "name", NULL),
    GBX_FIELD_IF(output_row, is_compared, is_ok, BOOL, "ok", NULL),
    GBX_FIELD_IF(output_row, is_compared, comparison.max_abs, F64, "max_abs", NULL),
    GBX_FIELD_IF(output_row, is_compared, comparison.max_rel, F64, "max_rel", NULL),
    GBX_FIELD_IF(output_row, is_compared, comparison.mismatches, COUNT, "mismatches", NULL),
    GBX_FIELD_IF(output_row, comparison.mismatches, comparison.first_bad.index, INDEX, "first_bad",
                 NULL, .with = offsetof(output_row, tensor)),
    GBX_FIELD(output_row, hash, TEXT, "hash", NULL)};

static gbx_status make_output(const void *outputs, uint64_t number, void *out_row) {
    const gbx_output_result *output = (const gbx_output_result *)outputs + number;
    output_row *row = out_row;
    *row = (output_row){.name = output->arg->name,
                        .is_compared = output->is_compared,
                        .is_ok = output->comparison.mismatches == 0,
                        .comparison = output->comparison,
                        .tensor = output->arg->tensor};
    gbx_hash_format(output->hash, row->hash);
    return NULL;
}

/* A task that may have done it. */
typedef struct candidate_row {
    uint64_t task;
    uint32_t func_id;
    bool has_arg;
    uint32_t arg_index;
} candidate_row;

/* The first candidate stands for all: tensor_dump.json has the others. */
typedef struct finding_row {
    uint32_t kind;
    uint32_t place;
    uint32_t place_index;
    uint32_t certainty;
    const char *text;
    uint64_t time_ns;
    bool has_finder;
    uint64_t finder;
    bool has_owner;
    uint64_t owner;
    uint64_t address;
    uint64_t bytes;
    int64_t first;
    uint64_t span;
    uint64_t changed;
    uint64_t candidate_count;
    bool has_candidate;
    candidate_row candidate;
} finding_row;

static const gbx_field candidate_fields[] = {
    GBX_FIELD(candidate_row, task, NUMBER, "task_seq", NULL),
    GBX_FIELD(candidate_row, func_id, NUMBER, "func_id", NULL),
    GBX_FIELD_IF(candidate_row, has_arg, arg_index, NUMBER, "arg_index", NULL)};

static const gbx_field finding_fields[] = {
    GBX_FIELD(finding_row, kind, NAME, "kind", NULL, .names = &gbx_run_finding_kinds),
    GBX_FIELD(finding_row, text, STRING, "text", NULL),
    GBX_FIELD(finding_row, time_ns, COUNT, "time_ns", NULL),
    GBX_FIELD_IF(finding_row, has_finder, finder, NUMBER, "finder_seq", NULL),
    GBX_FIELD(finding_row, place, NAME, "place", NULL, .names = &gbx_run_finding_places),
    GBX_FIELD(finding_row, place_index, NUMBER, "place_index", NULL),
    GBX_FIELD_IF(finding_row, has_owner, owner, NUMBER, "owner_seq", NULL),
    GBX_FIELD(finding_row, address, HEX, "buffer_addr", NULL),
    GBX_FIELD(finding_row, bytes, COUNT, "buffer_bytes", NULL),
    GBX_FIELD(finding_row, first, I64, "first_byte", NULL),
    GBX_FIELD(finding_row, span, COUNT, "span_bytes", NULL),
    GBX_FIELD(finding_row, changed, COUNT, "changed_bytes", NULL),
    GBX_FIELD(finding_row, certainty, NAME, "certainty", NULL,
              .names = &gbx_run_finding_certainties),
    GBX_FIELD(finding_row, candidate_count, COUNT, "candidate_count", NULL),
    GBX_FIELD_IF(finding_row, has_candidate, candidate, OBJECT, "candidate", NULL,
                 GBX_MEMBERS(candidate_fields))};

static gbx_status make_finding(const void *findings, uint64_t number, void *out_row) {
    const gbx_scene_finding *from = (const gbx_scene_finding *)findings + number;
    const gbx_run_finding *f = &from->finding;
    const gbx_run_finding_task *first = &f->candidates[0];
    *(finding_row *)out_row =
        (finding_row){.kind = f->kind,
                      .place = f->place,
                      .place_index = f->index,
                      .certainty = f->certainty,
                      .text = from->text,
                      .time_ns = f->time_ns,
                      .has_finder = f->finder != GBX_FINDING_NO_TASK,
                      .finder = f->finder,
                      .has_owner = f->owner_task != GBX_FINDING_NO_TASK,
                      .owner = f->owner_task,
                      .address = f->address,
                      .bytes = f->bytes,
                      .first = f->first,
                      .span = f->span,
                      .changed = f->changed,
                      .candidate_count = f->candidate_total,
                      .has_candidate = f->candidate_count > 0,
                      .candidate = {.task = first->task,
                                    .func_id = first->func_id,
                                    .has_arg = first->arg_index != GBX_FINDING_NO_ARGUMENT,
                                    .arg_index = first->arg_index}};
    return NULL;
}

static const gbx_field result_fields[] = {
    GBX_FIELD(gbx_round_result, round, NUMBER, "round", NULL),
    GBX_FIELD(gbx_round_result, verdict, NAME, "status", NULL, .names = &verdict_names),
    GBX_FIELD(gbx_round_result, error, STRING, "error", NULL),
    GBX_FIELD(gbx_round_result, tasks, COUNT, "tasks", NULL),
    GBX_FIELD(gbx_round_result, seconds, F64, "seconds", NULL),
    GBX_FIELD(gbx_round_result, dump, STRING, "dump", NULL),
    GBX_FIELD_IF(gbx_round_result, dump, totals, OBJECT, "dump_totals", NULL,
                 GBX_MEMBERS(total_fields)),
    GBX_FIELD(gbx_round_result, signature_warnings, COUNT, "signature_warnings", NULL)};

/* The document begins with the first result: a run that fails before has none. */
static void put_result(gbx_run_report *report, const gbx_round_result *result) {
    gbx_json_writer *json = &report->sink->json;
    const gbx_scene_options *options = report->layout.options;
    output_row row;
    finding_row found;
    if (!report->is_begun) {
        gbx_sink_json_begin(report->sink);
        gbx_json_put_string(json, "scene", report->layout.scene->name);
        gbx_json_put_string(json, "platform", options->chip.platform);
        gbx_json_put_string(json, "runtime", options->runtime);
        gbx_json_put_u64(json, "blocks", options->chip.blocks);
        gbx_json_put_u64(json, "threads", options->chip.aicpu_threads);
        gbx_json_key(json, "cases");
        gbx_json_begin_array(json);
        report->is_begun = true;
    }
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "name", result->of_case->name);
    gbx_json_put_row(json, GBX_ROWS(result_fields, result, 1));
    gbx_json_key(json, "signature_sentences");
    gbx_json_begin_array(json);
    for (uint32_t i = 0; i < result->signature_sentence_count; ++i)
        gbx_json_string(json, result->signature_sentences[i]);
    gbx_json_end_array(json);
    gbx_json_put_objects(
        json, "outputs",
        GBX_ROWS_MADE(output_fields, result->outputs, result->output_count, make_output, &row));
    gbx_json_put_u64(json, "finding_count", result->finding_count);
    gbx_json_put_objects(json, "findings",
                         GBX_ROWS_MADE(finding_fields, result->findings, result->findings_kept,
                                       make_finding, &found));
    put_blame(report->sink, result);
    gbx_json_put_string(
        json, "diagnose",
        gbx_run_needs_diagnosis(result) ? diagnose_text(&report->sink->texts, result) : NULL);
    gbx_json_end_object(json);
}

/* --- all of it --- */

static void say_warnings(const gbx_round_result *result) {
    const char *name = result->of_case->name;
    uint32_t shown = result->signature_sentence_count;
    for (uint32_t i = 0; i < shown; ++i)
        gbx_command_say("run", "case %s: warning: %s", name, result->signature_sentences[i]);
    if (result->signature_warnings > shown)
        gbx_command_say("run",
                        "case %s: warning: %" PRIu64
                        " arguments break a signature; above is the first of each sort",
                        name, result->signature_warnings);
}

void gbx_run_report_add(gbx_run_report *report, const gbx_round_result *result) {
    if (report->layout.as_json)
        put_result(report, result);
    else
        print_result(report, result);
    say_warnings(result);
    if (result->error)
        gbx_command_say("run", "case %s: %s", result->of_case->name, result->error);
}

gbx_status gbx_run_report_end(gbx_run_report *report, gbx_status status) {
    if (!report->is_begun)
        return status;
    gbx_json_end_array(&report->sink->json);
    return gbx_sink_json_end(report->sink, status);
}
