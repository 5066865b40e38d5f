#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "api/run_dump.h"
#include "chip/host/chip.h"
#include "dump/host/filter.h"
#include "runtime/runtimes.h"
#include "toolchain/kernel_compiler.h"

static gbx_status check_runtime(const char *name, const gbx_runtime **out_runtime) {
    *out_runtime = gbx_runtime_find(name);
    if (*out_runtime)
        return NULL;
    return gbx_fail(GBX_NOT_FOUND, "unknown runtime \"%s\"; expected %s, %s or %s", name,
                    gbx_runtime_name(0), gbx_runtime_name(1), gbx_runtime_name(2));
}

static gbx_status check_tensor(const gbx_run_tensor *tensor, uint32_t index) {
    const char *name = tensor->name ? tensor->name : "unnamed";
    gbx_status status = gbx_tensor_validate(&tensor->tensor);
    if (status)
        return gbx_status_annotate(status, "running: tensor %" PRIu32 " (%s)", index, name);
    if ((unsigned)tensor->role > GBX_ROLE_INOUT)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "running: tensor %" PRIu32
                        " (%s): unknown role %d; expected input, output or inout",
                        index, name, (int)tensor->role);
    if (!gbx_tensor_is_contiguous(&tensor->tensor) || tensor->tensor.start_offset != 0)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "running: tensor %" PRIu32 " (%s) is not row-major and contiguous", index,
                        name);
    if (tensor->tensor.data == 0 && gbx_tensor_payload_bytes(&tensor->tensor) != 0)
        return gbx_fail(GBX_INVALID_ARGUMENT, "running: tensor %" PRIu32 " (%s) is a null tensor",
                        index, name);
    return NULL;
}

static gbx_status check_run(const gbx_run *run) {
    int forms = (run->source != NULL) + (run->shared_object != NULL) + (run->function != NULL);
    if (forms != 1)
        return gbx_fail(
            GBX_INVALID_ARGUMENT,
            "running: %d of source, shared_object and function are set; set exactly one", forms);
    if (run->tensor_count > GBX_MAX_RUN_TENSORS || run->scalar_count > GBX_MAX_RUN_SCALARS)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "running with %" PRIu32 " tensors and %" PRIu32
                        " scalars: at most %d of each are possible",
                        run->tensor_count, run->scalar_count, GBX_MAX_RUN_TENSORS);
    if ((run->tensor_count && !run->tensors) || (run->scalar_count && !run->scalars))
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "running: tensor_count or scalar_count is set, but its array is NULL");
    for (uint32_t i = 0; i < run->tensor_count; ++i)
        GBX_TRY(check_tensor(&run->tensors[i], i));
    return NULL;
}

static gbx_status find_object(const gbx_run *run, char **out_path) {
    *out_path = NULL;
    if (run->source)
        return gbx_kernel_compile(run->source, NULL, NULL, out_path);
    if (!run->shared_object)
        return NULL;
    /* Absolute: the chip may be in another directory, and dlopen searches for a bare name. */
    *out_path = realpath(run->shared_object, NULL);
    return *out_path
               ? NULL
               : gbx_fail(GBX_NOT_FOUND, "running %s: %s", run->shared_object, strerror(errno));
}

static gbx_status run_request(gbx_runtime_request *request, gbx_call_result *out_result) {
    gbx_call_result result = {0};
    gbx_run_dump dump;
    GBX_TRY(gbx_run_dump_begin(request, &dump));
    gbx_status status = request->call ? gbx_runtime_call(request, &result)
                                      : request->runtime->run(request, &result);
    status = gbx_run_dump_end(&dump, status, &result);
    if (out_result)
        *out_result = result;
    return status;
}

static const gbx_call_config defaults;

gbx_status gbx_chip_run(gbx_chip *chip, const gbx_run *run, const gbx_call_config *config,
                        gbx_call_result *out_result) {
    gbx_runtime_request request = {.chip = chip,
                                   .run = run,
                                   .config = config ? config : &defaults,
                                   .entry = run->entry ? run->entry : "orchestrate"};
    char *object;
    GBX_TRY(gbx_chip_check_alive(chip, "running"));
    GBX_TRY(check_runtime(run->runtime, &request.runtime));
    GBX_TRY(check_run(run));
    GBX_TRY(find_object(run, &object));
    request.object = object;
    gbx_status status = run_request(&request, out_result);
    free(object);
    return status;
}

gbx_status gbx_chip_call(gbx_chip *chip, const gbx_call *call, const gbx_call_config *config,
                         gbx_call_result *out_result) {
    static const gbx_run no_run;
    gbx_runtime_request request = {.chip = chip,
                                   .run = &no_run,
                                   .config = config ? config : &defaults,
                                   .call = call,
                                   .runtime = gbx_runtime_find("host_build_graph")};
    GBX_TRY(gbx_chip_check_alive(chip, "calling"));
    return run_request(&request, out_result);
}

gbx_status gbx_dump_filters_check(const gbx_dump_options *options, const gbx_kernel *kernels,
                                  size_t kernel_count) {
    gbx_dump_filter ignored;
    for (size_t i = 0; i < options->filter_count; ++i)
        GBX_TRY(gbx_dump_filter_parse(options->filters[i], kernels, kernel_count, &ignored));
    return NULL;
}
