#include "scene/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chip/host/chip.h"
#include "scene/case_data.h"
#include "scene/golden.h"
#include "scene/guard.h"
#include "scene/kernel_compiler.h"

enum { EXIT_DIFFERS = 1, EXIT_INPUT = 2, EXIT_DEVICE = 3 };

typedef struct session {
    const gbx_scene *scene;
    const gbx_scene_options *options;
    const gbx_scene_observer *observer;
    const char *runtime;
    const gbx_scene_program *orchestration;
    char *orchestration_path; /* compiled */
    char **kernel_paths;
    gbx_golden golden;
    gbx_chip *chip; /* NULL when it has to be opened */
    int exit_code;
} session;

static void tell_phase(const session *s, const gbx_scene_case *of_case, const char *what) {
    if (s->observer->phase)
        s->observer->phase(s->observer->context, of_case, what);
}

/* --- what all cases share --- */

static gbx_status fail_no_orchestration(const session *s) {
    char known[256] = "";
    for (uint32_t i = 0; i < GBX_SCENE_MAX_RUNTIMES; ++i) {
        size_t used = strlen(known);
        if (s->scene->orchestrations[i].source)
            snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                     gbx_runtime_name(i));
    }
    return gbx_fail(GBX_NOT_FOUND, "%s: there is no orchestration for %s; there is for %s",
                    s->scene->path, s->runtime, known);
}

static gbx_status choose_runtime(session *s) {
    s->runtime = s->options->runtime ? s->options->runtime : gbx_runtime_name(0);
    for (uint32_t i = 0; i < GBX_SCENE_MAX_RUNTIMES && gbx_runtime_name(i); ++i) {
        const gbx_scene_program *program = &s->scene->orchestrations[i];
        if (!program->source || strcmp(gbx_runtime_name(i), s->runtime) != 0)
            continue;
        s->orchestration = program;
        return NULL;
    }
    return fail_no_orchestration(s);
}

static gbx_status compile_all(session *s) {
    tell_phase(s, NULL, "compiling");
    s->kernel_paths = calloc(s->scene->kernel_count, sizeof *s->kernel_paths);
    if (!s->kernel_paths)
        return gbx_fail(GBX_EXHAUSTED, "running %s: the host is out of memory", s->scene->name);
    for (size_t i = 0; i < s->scene->kernel_count; ++i) {
        const gbx_scene_kernel *kernel = &s->scene->kernels[i];
        GBX_TRY(gbx_kernel_compile(kernel->source, kernel->compile_flags, kernel->link_flags,
                                   &s->kernel_paths[i]));
    }
    GBX_TRY(gbx_kernel_compile(s->orchestration->source, NULL, NULL, &s->orchestration_path));
    if (s->options->skips_golden || !s->scene->golden.source)
        return NULL;
    return gbx_golden_open(&s->scene->golden, &s->golden);
}

static gbx_status register_kernels(session *s) {
    for (size_t i = 0; i < s->scene->kernel_count; ++i) {
        const gbx_scene_kernel *from = &s->scene->kernels[i];
        gbx_kernel kernel = {.func_id = from->func_id,
                             .name = from->name,
                             .core = from->core,
                             .shared_object = s->kernel_paths[i]};
        gbx_status status = gbx_kernel_register(s->chip, &kernel);
        if (status)
            return gbx_status_annotate(status, "%s", from->source);
    }
    return NULL;
}

static gbx_status open_chip(session *s) {
    if (s->chip)
        return NULL;
    tell_phase(s, NULL, "opening the chip");
    GBX_TRY(gbx_chip_open(&s->options->chip, &s->chip));
    gbx_status status = register_kernels(s);
    if (status) {
        gbx_chip_close(s->chip);
        s->chip = NULL;
    }
    return status;
}

static void close_session(session *s) {
    gbx_chip_close(s->chip);
    gbx_golden_close(&s->golden);
    free(s->orchestration_path);
    for (size_t i = 0; s->kernel_paths && i < s->scene->kernel_count; ++i)
        free(s->kernel_paths[i]);
    free(s->kernel_paths);
}

/* --- one run --- */

static void on_progress(void *context, uint64_t tasks) {
    const session *s = context;
    if (s->observer->progress)
        s->observer->progress(s->observer->context, tasks);
}

/* Only on host_build_graph does the orchestration run in this process. */
static gbx_status call_chip(session *s, const gbx_run *run, gbx_call_result *out_result) {
    gbx_call_config config = s->options->call;
    config.progress = on_progress;
    config.progress_context = s;
    if (strcmp(s->runtime, "host_build_graph") != 0)
        return gbx_chip_run(s->chip, run, &config, out_result);
    char what[256];
    gbx_guard guard;
    snprintf(what, sizeof what, "%s: %s()", s->orchestration->source, s->orchestration->entry);
    GBX_TRY(gbx_guard_begin(&guard, what));
    gbx_status status = gbx_chip_run(s->chip, run, &config, out_result);
    gbx_guard_end(&guard);
    return status;
}

static gbx_status run_once(session *s, gbx_case_data *data, gbx_round_result *result) {
    gbx_run run = {.runtime = s->runtime,
                   .shared_object = s->orchestration_path,
                   .entry = s->orchestration->entry,
                   .tensors = data->tensors,
                   .tensor_count = data->tensor_count,
                   .scalars = data->scalars,
                   .scalar_count = data->scalar_count};
    gbx_call_result counts = {0};
    GBX_TRY(open_chip(s));
    GBX_TRY(gbx_case_data_restore(data));
    tell_phase(s, data->source, "running");
    gbx_status status = call_chip(s, &run, &counts);
    result->tasks = counts.tasks;
    result->seconds = (double)counts.device_ns * 1e-9;
    bool names_file = gbx_status_code(status) == GBX_BAD_KERNEL;
    return names_file ? gbx_status_annotate(status, "%s", s->orchestration->source) : status;
}

static gbx_status compute_golden(session *s, gbx_case_data *data) {
    if (!s->golden.program || data->has_golden)
        return NULL;
    tell_phase(s, data->source, "computing what is expected");
    GBX_TRY(gbx_case_data_add_golden(data));
    return gbx_golden_run(&s->golden, data);
}

static void look_at_outputs(const session *s, const gbx_case_data *data, gbx_output_result *outputs,
                            gbx_round_result *result) {
    bool is_compared = s->golden.program != NULL;
    result->verdict = is_compared ? GBX_VERDICT_OK : GBX_VERDICT_NOT_COMPARED;
    tell_phase(s, data->source, "comparing");
    for (uint32_t i = 0; i < data->tensor_count; ++i) {
        if (!gbx_case_data_is_output(data, i))
            continue;
        const gbx_scene_arg *arg = data->args[i];
        const void *got = (const void *)(uintptr_t)data->tensors[i].tensor.data;
        gbx_output_result *output = &outputs[result->output_count++];
        *output =
            (gbx_output_result){.arg = arg,
                                .hash = gbx_hash_bytes(got, gbx_tensor_payload_bytes(&arg->tensor)),
                                .is_compared = is_compared};
        if (!is_compared)
            continue;
        output->comparison = gbx_compare(
            &arg->tensor, got, (const void *)(uintptr_t)data->golden[i].data, arg->rtol, arg->atol);
        if (output->comparison.mismatches > 0)
            result->verdict = GBX_VERDICT_DIFFERS;
    }
}

static void note_exit_code(session *s, int code) {
    static const int rank[] = {[0] = 0, [EXIT_DIFFERS] = 1, [EXIT_INPUT] = 3, [EXIT_DEVICE] = 2};
    if (rank[code] > rank[s->exit_code])
        s->exit_code = code;
}

/* Consumes `error`. */
static void report(session *s, gbx_round_result *result, gbx_status error) {
    int code = gbx_code_exit(gbx_status_code(error));
    if (error) {
        result->verdict = GBX_VERDICT_FAILED;
        result->error = gbx_status_message(error);
        result->output_count = 0;
    } else if (result->verdict == GBX_VERDICT_DIFFERS) {
        code = EXIT_DIFFERS;
    }
    note_exit_code(s, code);
    if (s->observer->result)
        s->observer->result(s->observer->context, result);
    /* A chip that failed runs nothing more. */
    if (s->chip && s->chip->failure != GBX_OK) {
        gbx_chip_close(s->chip);
        s->chip = NULL;
    }
    gbx_status_free(error);
}

/* Rounds go on after a difference, not after a failure. */
static void run_rounds(session *s, gbx_case_data *data) {
    gbx_output_result outputs[GBX_MAX_RUN_TENSORS];
    uint32_t rounds = s->options->rounds ? s->options->rounds : 1;
    bool has_failed = false;
    for (uint32_t round = 1; round <= rounds && !has_failed; ++round) {
        gbx_round_result result = {.of_case = data->source, .round = round, .outputs = outputs};
        gbx_status error = run_once(s, data, &result);
        if (!error)
            error = compute_golden(s, data);
        if (!error)
            look_at_outputs(s, data, outputs, &result);
        has_failed = error != NULL;
        report(s, &result, error);
    }
}

static void run_case(session *s, const gbx_scene_case *one) {
    gbx_case_data data;
    tell_phase(s, one, "filling inputs");
    gbx_status error = gbx_case_data_create(s->scene, one, &data);
    if (error)
        report(s, &(gbx_round_result){.of_case = one, .round = 1}, error);
    else
        run_rounds(s, &data);
    gbx_case_data_free(&data);
}

gbx_status gbx_scene_run(const gbx_scene *scene, const gbx_scene_case *const *cases,
                         size_t case_count, const gbx_scene_options *options,
                         const gbx_scene_observer *observer, int *out_exit_code) {
    session s = {.scene = scene, .options = options, .observer = observer};
    gbx_status status = choose_runtime(&s);
    if (!status)
        status = compile_all(&s);
    if (!status)
        status = open_chip(&s);
    for (size_t i = 0; i < case_count && !status; ++i)
        run_case(&s, cases[i]);
    *out_exit_code = status ? gbx_code_exit(gbx_status_code(status)) : s.exit_code;
    close_session(&s);
    return status;
}
