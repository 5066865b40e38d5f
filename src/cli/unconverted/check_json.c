#include <stdlib.h>

#include "cli/internal.h"

static const char *const verdict_names[] = {[GBX_CHECK_RIGHT] = "right",
                                            [GBX_CHECK_INTRODUCED] = "introduced",
                                            [GBX_CHECK_NOT_CHECKED] = "not_checked"};

/* The worst element: where it is, what was expected and what is there. */
static void write_element(gbx_json_writer *json, const gbx_check_output *output) {
    const gbx_compared_element *worst = &output->comparison.worst;
    gbx_json_put_index(json, "element", &output->tensor, worst->index);
    gbx_json_put_value(json, "expected", output->tensor.dtype, worst->want_bits);
    gbx_json_put_value(json, "got", output->tensor.dtype, worst->got_bits);
}

static void write_output(gbx_json_writer *json, const gbx_check_output *output) {
    const gbx_comparison *c = &output->comparison;
    gbx_json_begin_object_inline(json);
    gbx_json_put_u64(json, "arg_index", output->slot);
    gbx_json_put_string(json, "arg_name", output->name);
    gbx_json_put_string(json, "dtype", gbx_dtype_name(output->tensor.dtype));
    gbx_json_put_u64(json, "elements", c->elements);
    gbx_json_put_u64(json, "not_written", output->not_written);
    gbx_json_put_u64(json, "mismatches", c->mismatches);
    gbx_json_put_f64(json, "max_abs", c->max_abs);
    gbx_json_put_f64(json, "max_rel", c->max_rel);
    gbx_json_put_f64(json, "rtol", c->tolerance.rtol);
    gbx_json_put_f64(json, "atol", c->tolerance.atol);
    gbx_json_key(json, "worst");
    if (c->mismatches > 0) {
        gbx_json_begin_object_inline(json);
        write_element(json, output);
        gbx_json_end_object(json);
    } else {
        gbx_json_null(json);
    }
    gbx_json_end_object(json);
}

/* task_seq, task_id, kernel. */
static void write_identity(gbx_json_writer *json, const gbx_check_report *report,
                           const gbx_check_line *line) {
    char kernel[GBX_VIEW_KERNEL_BYTES];
    gbx_json_put_u64(json, "task_seq", line->task);
    gbx_json_put_hex_text(json, "task_id", line->task_id);
    gbx_json_put_string(json, "kernel", gbx_check_kernel_text(report, line, kernel));
}

static void write_first(gbx_json_writer *json, const gbx_check_report *report, const char *replay) {
    const gbx_check_line *line = gbx_check_report_first(report);
    gbx_json_key(json, "first");
    if (!line) {
        gbx_json_null(json);
        return;
    }
    const gbx_check_output *output = &line->outputs[line->worst_output];
    gbx_json_begin_object(json);
    write_identity(json, report, line);
    gbx_json_put_u64(json, "arg_index", output->slot);
    gbx_json_put_string(json, "arg_name", output->name);
    write_element(json, output);
    gbx_json_put_f64(json, "rtol", output->comparison.tolerance.rtol);
    gbx_json_put_f64(json, "atol", output->comparison.tolerance.atol);
    gbx_json_put_string(json, "replay", replay);
    gbx_json_end_object(json);
}

static gbx_status write_kernels(gbx_json_writer *json, const gbx_check_report *report) {
    gbx_check_kernel *kernels;
    size_t count;
    char name[GBX_VIEW_KERNEL_BYTES];
    GBX_TRY(gbx_check_report_kernels(report, &kernels, &count));
    gbx_json_key(json, "kernels");
    gbx_json_begin_array(json);
    for (size_t i = 0; i < count; ++i) {
        gbx_json_begin_object_inline(json);
        gbx_json_put_string(json, "kernel", gbx_check_kernel_text(report, kernels[i].first, name));
        gbx_json_put_u64(json, "tasks", kernels[i].tasks);
        for (size_t v = 0; v < sizeof verdict_names / sizeof verdict_names[0]; ++v)
            gbx_json_put_u64(json, verdict_names[v], kernels[i].verdicts[v]);
        gbx_json_put_u64(json, "not_written", kernels[i].not_written);
        gbx_json_put_u64(json, "stray_tasks", kernels[i].stray_tasks);
        gbx_json_put_f64(json, "max_abs", kernels[i].max_abs);
        gbx_json_put_f64(json, "max_rel", kernels[i].max_rel);
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
    free(kernels);
    return NULL;
}

static void write_task(gbx_json_writer *json, const gbx_check_report *report,
                       const gbx_check_line *line) {
    gbx_json_begin_object(json);
    write_identity(json, report, line);
    gbx_json_put_string(json, "verdict", verdict_names[line->verdict]);
    gbx_json_put_string(json, "reason", line->reason);
    gbx_json_put_u64(json, "missing_outputs", line->missing_outputs);
    gbx_json_put_known(json, "stray_bytes", !line->stray_is_unknown, line->stray_bytes);
    gbx_json_key(json, "outputs");
    gbx_json_begin_array(json);
    for (uint32_t i = 0; i < line->output_count; ++i)
        write_output(json, &line->outputs[i]);
    gbx_json_end_array(json);
    gbx_json_end_object(json);
}

gbx_status gbx_check_print_json(const gbx_check_report *report, const char *directory,
                                const char *replay) {
    static gbx_json_writer json; /* too large for a stack */
    const uint64_t *verdicts = report->verdicts;
    gbx_json_start_stdout(&json);
    gbx_json_put_string(&json, "dump", directory);
    gbx_json_put_string(&json, "scene", report->scene);
    gbx_json_put_bool(&json, "complete", gbx_reader_is_complete(report->reader));
    gbx_json_put_u64(&json, "dropped_records", gbx_reader_get_totals(report->reader)->dropped);
    gbx_json_put_u64(&json, "checked", report->count - verdicts[GBX_CHECK_NOT_CHECKED]);
    for (size_t v = 0; v < sizeof verdict_names / sizeof verdict_names[0]; ++v)
        gbx_json_put_u64(&json, verdict_names[v], verdicts[v]);
    gbx_json_put_u64(&json, "left_out", report->left_out);
    gbx_json_put_u64(&json, "bad_edges", report->bad_edges);
    write_first(&json, report, replay);
    gbx_status status = write_kernels(&json, report);
    gbx_json_key(&json, "tasks");
    gbx_json_begin_array(&json);
    for (uint64_t i = 0; i < report->count && !gbx_json_has_failed(&json); ++i)
        write_task(&json, report, &report->lines[i]);
    gbx_json_end_array(&json);
    return gbx_json_finish_stdout(&json, status);
}
