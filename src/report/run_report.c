#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/ending.h"
#include "report/reports.h"
#include "report/table.h"

static const gbx_name verdicts[] = {
    [GBX_VERDICT_OK] = {"ok", "ok", NULL},
    [GBX_VERDICT_DIFFERS] = {"differs", "DIFFERS", NULL},
    [GBX_VERDICT_FAILED] = {"failed", "failed", NULL},
    [GBX_VERDICT_NOT_COMPARED] = {"not_compared", "not compared", NULL}};
static const gbx_name_set verdict_names = {verdicts, sizeof verdicts / sizeof verdicts[0]};

typedef struct kept_result {
    gbx_round_result result; /* with copies of its own: */
    gbx_output_result *outputs;
    char *error;
    char *dump;
} kept_result;

struct gbx_run_report {
    gbx_sink *sink;
    gbx_run_layout layout;
    size_t name_width; /* of the longest case's name */
    kept_result *results;
    size_t count;
    uint64_t capacity;
};

gbx_status gbx_run_report_create(gbx_sink *sink, const gbx_run_layout *layout,
                                 gbx_run_report **out_report) {
    gbx_run_report *report = calloc(1, sizeof *report);
    *out_report = report;
    if (!report)
        return gbx_fail_memory("reporting a run");
    *report = (gbx_run_report){.sink = sink, .layout = *layout};
    for (size_t i = 0; i < layout->case_count; ++i) {
        size_t width = gbx_text_width(layout->cases[i]->name);
        report->name_width = width > report->name_width ? width : report->name_width;
    }
    return NULL;
}

void gbx_run_report_free(gbx_run_report *report) {
    for (size_t i = 0; report && i < report->count; ++i) {
        free(report->results[i].outputs);
        free(report->results[i].error);
        free(report->results[i].dump);
    }
    if (report)
        free(report->results);
    free(report);
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
    if (report->layout.rounds > 1)
        gbx_sink_print(sink, "round %" PRIu32 " of %" PRIu32 "  ", result->round,
                       report->layout.rounds);
    if (result->verdict != GBX_VERDICT_FAILED)
        gbx_sink_print(sink, "%8s  %7" PRIu64 " %s  %6s tasks/s  ",
                       gbx_text_ns(t, (uint64_t)(result->seconds * 1e9)), result->tasks,
                       gbx_text_verb(result->tasks, "task ", "tasks"), rate_text(t, rate));
    gbx_sink_print(sink, "%s\n", gbx_name_brief(&verdict_names, result->verdict));
    for (size_t i = 0; i < result->output_count; ++i)
        if (result->outputs[i].is_compared &&
            (report->layout.is_verbose || result->outputs[i].comparison.mismatches > 0))
            print_output(sink, &result->outputs[i]);
    if (result->dump)
        print_dump(sink, result);
    fflush(sink->out);
}

static gbx_status keep_result(gbx_run_report *report, const gbx_round_result *result) {
    GBX_TRY(gbx_array_reserve(&report->results, &report->capacity, report->count + 1,
                              "keeping results"));
    kept_result *kept = &report->results[report->count];
    size_t bytes = result->output_count * sizeof *result->outputs;
    *kept = (kept_result){.result = *result, .outputs = malloc(bytes + 1)};
    kept->error = result->error ? strdup(result->error) : NULL;
    kept->dump = result->dump ? strdup(result->dump) : NULL;
    ++report->count;
    if (!kept->outputs || (result->error && !kept->error) || (result->dump && !kept->dump))
        return gbx_fail_memory("keeping results");
    if (bytes)
        memcpy(kept->outputs, result->outputs, bytes);
    return NULL;
}

gbx_status gbx_run_report_add(gbx_run_report *report, const gbx_round_result *result) {
    gbx_status status = NULL;
    if (report->layout.as_json)
        status = keep_result(report, result);
    else
        print_result(report, result);
    if (result->error)
        gbx_command_say("run", "case %s: %s", result->of_case->name, result->error);
    return status;
}

/* --- JSON --- */

static const gbx_field total_fields[] = {
#define TOTAL(name) GBX_FIELD(gbx_dump_totals, name, COUNT, #name, NULL)
    TOTAL(records),          TOTAL(tensors),      TOTAL(dispatches), TOTAL(payload_bytes),
    TOTAL(stored_bytes),     TOTAL(deduplicated), TOTAL(truncated),  TOTAL(in_flight),
    TOTAL(dropped),          TOTAL(skipped),      TOTAL(stall_ns),   TOTAL(longest_capture_ns),
    TOTAL(unmatched_filters)};
static_assert(sizeof(gbx_dump_totals) ==
                  sizeof total_fields / sizeof total_fields[0] * sizeof(uint64_t),
              "every total is written");

typedef struct output_row {
    const char *name;
    bool is_compared; /* what was not compared is null, not right */
    bool is_ok;
    bool is_bad;
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
    GBX_FIELD_IF(output_row, is_bad, comparison.first_bad.index, INDEX, "first_bad", NULL,
                 .with = offsetof(output_row, tensor)),
    GBX_FIELD(output_row, hash, TEXT, "hash", NULL)};

static void put_output(gbx_json_writer *json, const gbx_output_result *output) {
    output_row row = {.name = output->arg->name,
                      .is_compared = output->is_compared,
                      .is_ok = output->comparison.mismatches == 0,
                      .is_bad = output->is_compared && output->comparison.mismatches > 0,
                      .comparison = output->comparison,
                      .tensor = output->arg->tensor};
    gbx_hash_format(output->hash, row.hash);
    gbx_json_begin_object(json);
    gbx_json_put_row(json, GBX_ROWS(output_fields, &row, 1));
    gbx_json_end_object(json);
}

static const gbx_field result_fields[] = {
    GBX_FIELD(kept_result, result.round, NUMBER, "round", NULL),
    GBX_FIELD(kept_result, result.verdict, NAME, "status", NULL, .names = &verdict_names),
    GBX_FIELD(kept_result, error, STRING, "error", NULL),
    GBX_FIELD(kept_result, result.tasks, COUNT, "tasks", NULL),
    GBX_FIELD(kept_result, result.seconds, F64, "seconds", NULL),
    GBX_FIELD(kept_result, dump, STRING, "dump", NULL)};

static void put_result(gbx_json_writer *json, const kept_result *kept) {
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "name", kept->result.of_case->name);
    gbx_json_put_row(json, GBX_ROWS(result_fields, kept, 1));
    if (kept->dump)
        gbx_json_put_object(json, "dump_totals", GBX_ROWS(total_fields, &kept->result.totals, 1));
    else
        gbx_json_put_null(json, "dump_totals");
    gbx_json_key(json, "outputs");
    gbx_json_begin_array(json);
    for (size_t i = 0; i < kept->result.output_count; ++i)
        put_output(json, &kept->outputs[i]);
    gbx_json_end_array(json);
    gbx_json_end_object(json);
}

gbx_status gbx_run_report_print_json(gbx_run_report *report, const gbx_scene *scene,
                                     const gbx_scene_options *options) {
    gbx_json_writer *json = gbx_sink_json_begin(report->sink);
    gbx_json_put_string(json, "scene", scene->name);
    gbx_json_put_string(json, "platform", options->chip.platform);
    gbx_json_put_string(json, "runtime", options->runtime);
    gbx_json_put_u64(json, "blocks", options->chip.blocks);
    gbx_json_put_u64(json, "threads", options->chip.aicpu_threads);
    gbx_json_key(json, "cases");
    gbx_json_begin_array(json);
    for (size_t i = 0; i < report->count; ++i)
        put_result(json, &report->results[i]);
    gbx_json_end_array(json);
    return gbx_sink_json_end(report->sink, NULL);
}
