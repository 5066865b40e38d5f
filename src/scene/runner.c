#include "scene/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "scene/internal.h"
#include "store/run/golden_result.h"
#include "store/run/output_directory.h"
#include "toolchain/kernel_compiler.h"

typedef struct session {
    const gbx_scene *scene;
    const gbx_scene_options *options;
    const gbx_scene_observer *observer;
    const char *runtime;
    const gbx_scene_program *orchestration;
    char *orchestration_path; /* compiled */
    char **kernel_paths;
    gbx_golden golden;
    gbx_chip *chip;     /* NULL when it must be opened */
    uint64_t run_count; /* cases times rounds */
    time_t start_time;
    int exit_code;
    gbx_scene_finding findings[GBX_RESULT_FINDINGS]; /* of the last run */
} session;

static void report_phase(const session *s, const gbx_scene_case *of_case, const char *what) {
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
    return gbx_fail(GBX_NOT_FOUND, "%s: no orchestration for %s; choose one of %s with --runtime",
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

/* Before anything is compiled; the dump parses them again. */
static gbx_status check_filters(const session *s) {
    const gbx_scene *scene = s->scene;
    gbx_kernel *kernels = calloc(scene->kernel_count, sizeof *kernels);
    if (!kernels)
        return gbx_fail_memory("running %s", scene->name);
    for (size_t i = 0; i < scene->kernel_count; ++i)
        kernels[i] =
            (gbx_kernel){.func_id = scene->kernels[i].func_id, .name = scene->kernels[i].name};
    gbx_status status =
        gbx_dump_filters_check(&s->options->call.dump, kernels, scene->kernel_count);
    free(kernels);
    return status;
}

static gbx_status compile_all(session *s) {
    report_phase(s, NULL, "compiling");
    s->kernel_paths = calloc(s->scene->kernel_count, sizeof *s->kernel_paths);
    if (!s->kernel_paths)
        return gbx_fail_memory("running %s", s->scene->name);
    for (size_t i = 0; i < s->scene->kernel_count; ++i) {
        const gbx_scene_kernel *kernel = &s->scene->kernels[i];
        GBX_TRY(gbx_kernel_compile_in(s->scene->directory, kernel->source, kernel->compile_flags,
                                      kernel->link_flags, &s->kernel_paths[i]));
    }
    GBX_TRY(gbx_kernel_compile(s->orchestration->source, NULL, NULL, &s->orchestration_path));
    if (s->options->skips_golden || !s->scene->golden.source)
        return NULL;
    return gbx_golden_open(&s->scene->golden, &s->golden);
}

/* "in,out:[2],scalar:float32" and "x,y,addend"; out of memory when either is NULL. */
static void join_parameters(const gbx_scene_kernel *kernel, char **out_signature,
                            char **out_names) {
    size_t signature_bytes;
    size_t names_bytes;
    FILE *signature = open_memstream(out_signature, &signature_bytes);
    FILE *names = open_memstream(out_names, &names_bytes);
    for (size_t i = 0; signature && names && i < kernel->parameter_count; ++i) {
        const gbx_scene_parameter *parameter = &kernel->signature[i];
        char word[GBX_PARAMETER_TEXT_BYTES];
        gbx_parameter_write(&parameter->is, word);
        fprintf(signature, "%s%s", i ? "," : "", word);
        fprintf(names, "%s%s", i ? "," : "", parameter->name ? parameter->name : "");
    }
    if (signature)
        fclose(signature);
    if (names)
        fclose(names);
}

static gbx_status register_kernel(session *s, const gbx_scene_kernel *from, const char *path) {
    char *signature = NULL;
    char *names = NULL;
    join_parameters(from, &signature, &names);
    bool has_names = from->parameter_count > 0 && from->signature[0].name;
    gbx_kernel kernel = {.func_id = from->func_id,
                         .name = from->name,
                         .core = from->core,
                         .shared_object = path,
                         .signature = signature,
                         .arg_names = has_names ? names : NULL,
                         .origin = from->source,
                         .compile_flags = from->compile_flags,
                         .link_flags = from->link_flags};
    gbx_status status = signature && names ? gbx_kernel_register(s->chip, &kernel)
                                           : gbx_fail_memory("registering a kernel");
    free(signature);
    free(names);
    return gbx_status_annotate(status, "%s", from->source);
}

static void close_chip(session *s) {
    gbx_chip_close(s->chip);
    s->chip = NULL;
}

static gbx_status open_chip(session *s) {
    if (s->chip)
        return NULL;
    report_phase(s, NULL, "opening the chip");
    GBX_TRY(gbx_chip_open(&s->options->chip, &s->chip));
    gbx_status status = NULL;
    for (size_t i = 0; i < s->scene->kernel_count && !status; ++i)
        status = register_kernel(s, &s->scene->kernels[i], s->kernel_paths[i]);
    if (status)
        close_chip(s);
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

/* Only on host_build_graph does the orchestration run in this process. */
static gbx_status call_chip(session *s, const gbx_run *run, const gbx_call_config *config,
                            gbx_call_result *out_result) {
    if (strcmp(s->runtime, "host_build_graph") != 0)
        return gbx_chip_run(s->chip, run, config, out_result);
    char what[256];
    gbx_guard guard;
    snprintf(what, sizeof what, "%s: %s()", s->orchestration->source, s->orchestration->entry);
    GBX_TRY(gbx_guard_begin(&guard, what));
    gbx_status status = gbx_chip_run(s->chip, run, config, out_result);
    gbx_guard_end(&guard);
    return status;
}

static gbx_status make_output(const session *s, const gbx_round_result *result,
                              gbx_output_directory *out) {
    gbx_output_place place = {.chosen = s->options->output,
                              .scene = s->scene->name,
                              .case_name = result->of_case->name,
                              .round = s->options->rounds > 1 ? result->round : 0,
                              .is_only = s->run_count == 1,
                              .time = s->start_time};
    bool has_dump = s->options->call.enable_dump_tensor || s->options->call.enable_dump_args;
    *out = (gbx_output_directory){0};
    return has_dump ? gbx_output_directory_create(&place, out) : NULL;
}

static void take_findings(session *s, const gbx_run *run, const gbx_call_result *counts,
                          gbx_round_result *result) {
    gbx_scene_finding *to = s->findings;
    result->finding_count = counts->finding_count;
    result->findings = to;
    for (; result->findings_kept < counts->finding_count &&
           result->findings_kept < GBX_RESULT_FINDINGS;
         ++result->findings_kept, ++to) {
        to->finding = counts->findings[result->findings_kept];
        gbx_finding_describe(s->chip, run, &to->finding, to->text, sizeof to->text);
    }
}

/* Runs with a dump, if there is one; an empty directory is removed after a failure. */
static gbx_status call_with_output(session *s, const gbx_run *run, gbx_round_result *result,
                                   gbx_output_directory *output) {
    gbx_call_result counts = {0};
    gbx_call_config config = s->options->call;
    GBX_TRY(make_output(s, result, output));
    config.progress = s->observer->progress;
    config.progress_context = s->observer->context;
    config.dump.directory = output->path;
    config.dump.about.scene = s->scene->name;
    config.dump.about.scene_path = s->scene->directory;
    config.dump.about.case_name = result->of_case->name;
    config.dump.about.round = s->options->rounds > 1 ? result->round : 0;
    gbx_status status = call_chip(s, run, &config, &counts);
    if (status)
        gbx_output_directory_discard(output);
    result->tasks = counts.tasks;
    result->seconds = (double)counts.device_ns * 1e-9;
    result->totals = counts.dump;
    result->signature_warnings = counts.signature_warnings;
    result->signature_sentence_count = counts.signature_sentence_count;
    memcpy(result->signature_sentences, counts.signature_sentences,
           sizeof result->signature_sentences);
    result->dump = output->path;
    take_findings(s, run, &counts, result);
    return status;
}

static gbx_status run_once(session *s, gbx_case_data *data, gbx_round_result *result,
                           gbx_output_directory *output) {
    gbx_run run = {.runtime = s->runtime,
                   .shared_object = s->orchestration_path,
                   .entry = s->orchestration->entry,
                   .tensors = data->tensors,
                   .tensor_count = data->tensor_count,
                   .scalars = data->scalars,
                   .scalar_count = data->scalar_count,
                   .scalar_names = data->scalar_names,
                   .scalar_dtypes = data->scalar_dtypes};
    GBX_TRY(open_chip(s));
    GBX_TRY(gbx_case_data_restore(data));
    report_phase(s, data->source, "running");
    gbx_status status = call_with_output(s, &run, result, output);
    bool names_file = gbx_status_code(status) == GBX_BAD_KERNEL;
    return names_file ? gbx_status_annotate(status, "%s", s->orchestration->source) : status;
}

static gbx_status compute_golden(session *s, gbx_case_data *data) {
    if (!s->golden.program || data->has_golden)
        return NULL;
    report_phase(s, data->source, "computing the golden");
    GBX_TRY(gbx_case_data_add_golden(data));
    return gbx_golden_run(&s->golden, data);
}

static void look_at_outputs(const session *s, const gbx_case_data *data, gbx_output_result *outputs,
                            gbx_round_result *result) {
    bool is_compared = s->golden.program != NULL;
    result->verdict = is_compared ? GBX_VERDICT_OK : GBX_VERDICT_NOT_COMPARED;
    report_phase(s, data->source, "comparing");
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
        gbx_tolerance tolerance = {.rtol = arg->rtol, .atol = arg->atol};
        output->comparison = gbx_compare(&arg->tensor, got,
                                         (const void *)(uintptr_t)data->golden[i].data, &tolerance);
        if (output->comparison.mismatches > 0)
            result->verdict = GBX_VERDICT_DIFFERS;
    }
}

/* Keeps in the dump what a golden said and which outputs differ, so that other commands know. The
 * run is done even where that fails. */
static gbx_status keep_differences(const gbx_round_result *result) {
    gbx_golden_output wrong[GBX_MAX_RUN_TENSORS];
    size_t count = 0;
    bool is_any = false;
    for (size_t i = 0; result->dump && i < result->output_count; ++i) {
        const gbx_output_result *output = &result->outputs[i];
        const gbx_tensor *tensor = &output->arg->tensor;
        uint64_t number = output->comparison.first_bad.index;
        is_any |= output->is_compared;
        if (!output->is_compared || output->comparison.mismatches == 0)
            continue;
        gbx_golden_output *to = &wrong[count++];
        *to = (gbx_golden_output){.name = output->arg->name,
                                  .elements = output->comparison.elements,
                                  .mismatches = output->comparison.mismatches,
                                  .ndims = tensor->ndims};
        for (uint32_t d = tensor->ndims; d-- > 0;) {
            to->first_bad[d] = (int64_t)(number % (uint64_t)tensor->shape[d]);
            number /= (uint64_t)tensor->shape[d];
        }
    }
    gbx_status status = is_any ? gbx_golden_result_write(result->dump, wrong, count) : NULL;
    if (!status)
        return NULL;
    gbx_status lost = gbx_fail(GBX_LOST, "%s", gbx_status_message(status));
    gbx_status_free(status);
    return lost;
}

/* GBX_LOST: the run is done, but its dump lacks records. */
static bool is_done(gbx_status error) {
    return !error || gbx_status_code(error) == GBX_LOST;
}

/* Both sentences, with the code of the second; consumes both. */
static gbx_status join_errors(gbx_status first, gbx_status second) {
    if (!first || !second)
        return first ? first : second;
    gbx_status both = gbx_fail(gbx_status_code(second), "%s; and %s", gbx_status_message(first),
                               gbx_status_message(second));
    gbx_status_free(first);
    gbx_status_free(second);
    return both;
}

static gbx_status find_unmatched(const session *s, const gbx_round_result *result) {
    const gbx_dump_options *dump = &s->options->call.dump;
    uint64_t count = result->totals.unmatched_filters;
    if (count == 0)
        return NULL;
    if (dump->filter_count == 1)
        return gbx_fail(GBX_NOT_FOUND, "the dump filter \"%s\" matched nothing", dump->filters[0]);
    return gbx_fail(GBX_NOT_FOUND, "%" PRIu64 " of the %zu dump filters matched nothing", count,
                    dump->filter_count);
}

/* Consumes `error`. When the run is done, the error is reported in addition to the verdict. */
static void report(session *s, gbx_round_result *result, gbx_status error) {
    bool has_failed = !is_done(error);
    s->exit_code = gbx_exit_worse(s->exit_code, gbx_code_exit(gbx_status_code(error)));
    if (has_failed) {
        result->verdict = GBX_VERDICT_FAILED;
        result->output_count = 0;
    } else {
        error = join_errors(error, find_unmatched(s, result));
        if (result->totals.unmatched_filters || result->verdict == GBX_VERDICT_DIFFERS ||
            result->finding_count)
            s->exit_code = gbx_exit_worse(s->exit_code, GBX_EXIT_DIFFERS);
    }
    result->error = error ? gbx_status_message(error) : NULL;
    result->is_refused = has_failed && gbx_code_exit(gbx_status_code(error)) == GBX_EXIT_USAGE;
    if (s->observer->result)
        s->observer->result(s->observer->context, result);
    if (s->chip && gbx_chip_has_failed(s->chip))
        close_chip(s);
    gbx_status_free(error);
}

/* Continues with the next round after a difference, but not after a failure. */
static void run_rounds(session *s, gbx_case_data *data) {
    gbx_output_result outputs[GBX_MAX_RUN_TENSORS];
    uint32_t rounds = s->options->rounds ? s->options->rounds : 1;
    bool has_failed = false;
    for (uint32_t round = 1; round <= rounds && !has_failed; ++round) {
        gbx_round_result result = {.of_case = data->source, .round = round, .outputs = outputs};
        gbx_output_directory output = {0};
        gbx_status error = run_once(s, data, &result, &output);
        if (is_done(error))
            error = join_errors(error, compute_golden(s, data));
        has_failed = !is_done(error);
        if (!has_failed) {
            look_at_outputs(s, data, outputs, &result);
            error = join_errors(error, keep_differences(&result));
        }
        report(s, &result, error);
        gbx_output_directory_free(&output);
    }
}

static void run_case(session *s, const gbx_scene_case *one) {
    gbx_case_data data;
    report_phase(s, one, "filling inputs");
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
    session s = {.scene = scene,
                 .options = options,
                 .observer = observer,
                 .run_count = case_count * (options->rounds ? options->rounds : 1),
                 .start_time = time(NULL)};
    gbx_status status = choose_runtime(&s);
    if (!status)
        status = check_filters(&s);
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
