#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/array_text.h"
#include "base/memory.h"
#include "cli/internal.h"

static const char *const verdict_words[] = {"ok", "DIFFERS", "failed", "not compared"};
static const char *const verdict_keys[] = {"ok", "differs", "failed", "not_compared"};

/* --- text --- */

static void print_output(const gbx_output_result *output) {
    const gbx_comparison *c = &output->comparison;
    const gbx_tensor *tensor = &output->arg->tensor;
    gbx_terminal_quote("  ", output->arg->name, ": ");
    if (c->mismatches == 0) {
        printf("ok, max abs %.3g, max rel %.3g\n", c->max_abs, c->max_rel);
        return;
    }
    char got[GBX_ELEMENT_TEXT_BYTES], want[GBX_ELEMENT_TEXT_BYTES], index[GBX_NUMBERS_TEXT_BYTES];
    gbx_element_format(tensor->dtype, c->first_bad.got_bits, got);
    gbx_element_format(tensor->dtype, c->first_bad.want_bits, want);
    printf("%" PRIu64 " of %" PRIu64 " elements differ, max abs %.3g, max rel %.3g, first at %s: "
           "got %s, want %s\n",
           c->mismatches, c->elements, c->max_abs, c->max_rel,
           gbx_text_index(tensor, c->first_bad.index, index), got, want);
}

/* "; 3 records lost", where there are any. */
static void print_some(uint64_t count, const char *one, const char *many) {
    char text[GBX_COUNT_TEXT_BYTES];
    if (count == 0)
        return;
    printf("; %s %s", gbx_text_count(count, text), count == 1 ? one : many);
}

/* "3 records, 3.2 MiB (1.1 MiB stored)", "12 dispatches" or both; those in flight are among them,
 * as in what view and verify print. */
static void print_contents(const gbx_dump_totals *totals) {
    char count[GBX_COUNT_TEXT_BYTES];
    char bytes[GBX_COUNT_TEXT_BYTES];
    uint64_t records = totals->records + totals->in_flight;
    bool has_records = records > 0 || totals->dispatches == 0;
    if (has_records)
        printf("%s record%s, %s", gbx_text_count(records, count), gbx_text_plural(records),
               gbx_text_bytes(totals->payload_bytes, bytes));
    if (has_records && totals->stored_bytes != totals->payload_bytes)
        printf(" (%s stored)", gbx_text_bytes(totals->stored_bytes, bytes));
    if (totals->dispatches)
        printf("%s%s dispatch%s", has_records ? ", " : "",
               gbx_text_count(totals->dispatches, count), totals->dispatches == 1 ? "" : "es");
}

/* Where the dump is, what is in it, and all that is not as one would think. */
static void print_dump(const gbx_round_result *result) {
    const gbx_dump_totals *totals = &result->totals;
    gbx_terminal_quote("dump  ", result->dump, ": ");
    print_contents(totals);
    print_some(totals->dropped, "record LOST", "records LOST");
    print_some(totals->skipped, "argument or task skipped", "arguments or tasks skipped");
    print_some(totals->truncated, "tensor cut off", "tensors cut off");
    print_some(totals->in_flight, "output of a task that did not complete",
               "outputs of tasks that did not complete");
    if (totals->stall_ns) {
        char time[GBX_TIME_TEXT_BYTES];
        printf("; waited %s for room", gbx_text_ns(totals->stall_ns, time));
    }
    printf("\n");
}

static void print_counts(const gbx_round_result *result) {
    char time[GBX_TIME_TEXT_BYTES];
    char text[32]; /* "950", "85.3k", "1.2M" */
    double rate = result->seconds > 0.0 ? (double)result->tasks / result->seconds : 0.0;
    gbx_text_ns((uint64_t)(result->seconds * 1e9), time);
    if (rate >= 1e6)
        snprintf(text, sizeof text, "%.1fM", rate * 1e-6);
    else if (rate >= 1e3)
        snprintf(text, sizeof text, "%.1fk", rate * 1e-3);
    else
        snprintf(text, sizeof text, "%.0f", rate);
    printf("%8s  %7" PRIu64 " %s  %6s tasks/s  ", time, result->tasks,
           result->tasks == 1 ? "task " : "tasks", text);
}

void gbx_run_print_result(const gbx_run_layout *layout, const gbx_round_result *result) {
    int width = (int)gbx_terminal_text_width(result->of_case->name);
    gbx_terminal_put(result->of_case->name);
    printf("%*s  ", layout->name_width > width ? layout->name_width - width : 0, "");
    if (layout->rounds > 1)
        printf("round %" PRIu32 " of %" PRIu32 "  ", result->round, layout->rounds);
    if (result->verdict != GBX_VERDICT_FAILED)
        print_counts(result);
    printf("%s\n", verdict_words[result->verdict]);
    for (size_t i = 0; i < result->output_count; ++i)
        if (result->outputs[i].is_compared &&
            (layout->is_verbose || result->outputs[i].comparison.mismatches > 0))
            print_output(&result->outputs[i]);
    if (result->dump)
        print_dump(result);
    fflush(stdout);
    gbx_run_print_error(result);
}

void gbx_run_print_error(const gbx_round_result *result) {
    if (result->error)
        gbx_command_say("run", "case %s: %s", result->of_case->name, result->error);
}

/* --- JSON --- */

typedef struct kept_result {
    gbx_round_result result; /* with copies of its own */
    gbx_output_result *outputs;
    char *error;
    char *dump;
} kept_result;

struct gbx_run_report {
    kept_result *results;
    size_t count;
    uint64_t capacity;
};

gbx_run_report *gbx_run_report_create(void) {
    return calloc(1, sizeof(gbx_run_report));
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

gbx_status gbx_run_report_add(gbx_run_report *report, const gbx_round_result *result) {
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

/* What was not compared is null, not right. */
static void write_comparison(gbx_json_writer *json, const gbx_output_result *output) {
    static const char *const keys[] = {"ok", "max_abs", "max_rel", "mismatches", "first_bad"};
    const gbx_comparison *c = &output->comparison;
    for (size_t i = 0; !output->is_compared && i < sizeof keys / sizeof keys[0]; ++i)
        gbx_json_put_null(json, keys[i]);
    if (!output->is_compared)
        return;
    gbx_json_put_bool(json, keys[0], c->mismatches == 0);
    gbx_json_put_f64(json, keys[1], c->max_abs);
    gbx_json_put_f64(json, keys[2], c->max_rel);
    gbx_json_put_u64(json, keys[3], c->mismatches);
    if (c->mismatches > 0)
        gbx_json_put_index(json, keys[4], &output->arg->tensor, c->first_bad.index);
    else
        gbx_json_put_null(json, keys[4]);
}

static void write_output(gbx_json_writer *json, const gbx_output_result *output) {
    char hash[GBX_HASH_TEXT_BYTES];
    gbx_hash_format(output->hash, hash);
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "name", output->arg->name);
    write_comparison(json, output);
    gbx_json_put_string(json, "hash", hash);
    gbx_json_end_object(json);
}

static void write_totals(gbx_json_writer *json, const gbx_dump_totals *totals) {
    const struct {
        const char *key;
        uint64_t value;
    } fields[] = {{"records", totals->records},
                  {"tensors", totals->tensors},
                  {"dispatches", totals->dispatches},
                  {"payload_bytes", totals->payload_bytes},
                  {"stored_bytes", totals->stored_bytes},
                  {"deduplicated", totals->deduplicated},
                  {"truncated", totals->truncated},
                  {"in_flight", totals->in_flight},
                  {"dropped", totals->dropped},
                  {"skipped", totals->skipped},
                  {"stall_ns", totals->stall_ns},
                  {"longest_capture_ns", totals->longest_capture_ns},
                  {"unmatched_filters", totals->unmatched_filters}};
    static_assert(sizeof *totals == 13 * sizeof(uint64_t), "every total is written");
    gbx_json_begin_object(json);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; ++i)
        gbx_json_put_u64(json, fields[i].key, fields[i].value);
    gbx_json_end_object(json);
}

static void write_result(gbx_json_writer *json, const kept_result *kept) {
    const gbx_round_result *result = &kept->result;
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "name", result->of_case->name);
    gbx_json_put_u64(json, "round", result->round);
    gbx_json_put_string(json, "status", verdict_keys[result->verdict]);
    gbx_json_put_string(json, "error", kept->error);
    gbx_json_put_u64(json, "tasks", result->tasks);
    gbx_json_put_f64(json, "seconds", result->seconds);
    gbx_json_put_string(json, "dump", kept->dump);
    gbx_json_key(json, "dump_totals");
    if (kept->dump)
        write_totals(json, &result->totals);
    else
        gbx_json_null(json);
    gbx_json_key(json, "outputs");
    gbx_json_begin_array(json);
    for (size_t i = 0; i < result->output_count; ++i)
        write_output(json, &kept->outputs[i]);
    gbx_json_end_array(json);
    gbx_json_end_object(json);
}

gbx_status gbx_run_report_print(const gbx_run_report *report, const gbx_scene *scene,
                                const gbx_scene_options *options) {
    gbx_json_writer json;
    gbx_json_start_stdout(&json);
    gbx_json_put_string(&json, "scene", scene->name);
    gbx_json_put_string(&json, "platform", options->chip.platform);
    gbx_json_put_string(&json, "runtime", options->runtime);
    gbx_json_put_u64(&json, "blocks", options->chip.blocks);
    gbx_json_put_u64(&json, "threads", options->chip.aicpu_threads);
    gbx_json_key(&json, "cases");
    gbx_json_begin_array(&json);
    for (size_t i = 0; i < report->count; ++i)
        write_result(&json, &report->results[i]);
    gbx_json_end_array(&json);
    return gbx_json_finish_stdout(&json, NULL);
}
