#include "runtime/host_build_graph/host_build_graph.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>

#include "chip/host/chip.h"
#include "runtime/host_build_graph/table.h"

static gbx_status find_entry(const gbx_runtime_request *request, void **out_object,
                             gbx_orchestrate_function *out_function) {
    *out_object = NULL;
    *out_function = request->run->function;
    if (*out_function)
        return NULL;
    *out_object = dlopen(request->object, RTLD_NOW | RTLD_LOCAL);
    if (!*out_object)
        return gbx_fail(GBX_BAD_KERNEL, "loading the orchestration: %s", dlerror());
    void *symbol = dlsym(*out_object, request->entry);
    if (!symbol) {
        dlclose(*out_object);
        return gbx_fail(GBX_BAD_KERNEL,
                        "%s has no %s; an orchestration defines int %s(gbx_orchestration *, const "
                        "gbx_run_args *)",
                        request->object, request->entry, request->entry);
    }
    memcpy(out_function, &symbol, sizeof symbol); /* ISO C has no cast to a function */
    return NULL;
}

static gbx_status orchestrate(const gbx_runtime_request *request, gbx_orchestrate_function function,
                              gbx_host_graph *graph) {
    const gbx_run *run = request->run;
    gbx_tensor tensors[GBX_MAX_RUN_TENSORS];
    for (uint32_t i = 0; i < run->tensor_count; ++i)
        tensors[i] = run->tensors[i].tensor;
    gbx_run_args args = {.tensors = tensors,
                         .scalars = run->scalars,
                         .tensor_count = run->tensor_count,
                         .scalar_count = run->scalar_count};
    if (request->listener)
        GBX_TRY(request->listener->receive(request->listener->context, &args));
    int result = function(&graph->orchestration, &args);
    if (result != 0 && graph->error.kind == GBX_GRAPH_OK)
        graph->error = (gbx_graph_error){.kind = GBX_GRAPH_RETURNED,
                                         .func_id = GBX_NO_KERNEL,
                                         .task = graph->entries.count,
                                         .values = {result}};
    return NULL;
}

static gbx_status run(const gbx_runtime_request *request, gbx_call_result *out_result) {
    void *object;
    gbx_orchestrate_function function;
    gbx_host_graph *graph;
    GBX_TRY(find_entry(request, &object, &function));
    gbx_status status = gbx_host_graph_create(request, &graph);
    if (!status) {
        status = orchestrate(request, function, graph);
        if (!status)
            status = gbx_host_graph_launch(graph, out_result);
        status = gbx_status_first(status, gbx_host_graph_destroy(graph));
    }
    if (object)
        dlclose(object);
    return status;
}

const gbx_runtime gbx_host_build_graph = {
    .name = "host_build_graph",
    .description = "the host builds the graph, then the chip runs it; explicit edges",
    .entry = GBX_ENTRY_HOST_BUILD_GRAPH,
    .builder = &gbx_host_builder,
    .run = run,
};

/* --- one task --- */

/* Adds the task and its tensor info, as an orchestration does, with roles from the signature of the
 * first kernel; inout where it has none. */
static void add_call(gbx_host_graph *graph, const gbx_call *call) {
    static const gbx_signature nothing;
    gbx_orchestration *orchestration = &graph->orchestration;
    gbx_task_kernels kernels =
        gbx_spmd(gbx_mix(call->kernels[0], call->kernels[1], call->kernels[2]),
                 call->block_num ? call->block_num : 1);
    uint32_t first = gbx_first_kernel(&kernels);
    const gbx_signature *signature =
        first < GBX_MAX_KERNELS ? &graph->limits.signatures[first] : &nothing;
    gbx_args args = gbx_args_begin();
    uint64_t words[GBX_MAX_WORDS];
    gbx_tensor_info infos[GBX_MAX_TENSOR_ARGS];
    for (uint32_t i = 0; i < call->tensor_count; ++i) {
        gbx_role role =
            i < signature->tensor_count ? (gbx_role)signature->slots[i].kind : GBX_ROLE_INOUT;
        words[i] = gbx_device_tensor(orchestration, &call->tensors[i]);
        infos[i] = (gbx_tensor_info){i, role, call->tensors[i]};
        gbx_args_add_tensor(&args, &call->tensors[i], role);
    }
    for (uint32_t i = 0; i < call->scalar_count; ++i) {
        words[call->tensor_count + i] = call->scalars[i];
        gbx_args_add_scalar(&args, GBX_DTYPE_NONE, call->scalars[i]);
    }
    gbx_task task = gbx_add_task_with_tensor_info(orchestration, kernels, words,
                                                  call->tensor_count + call->scalar_count, infos,
                                                  call->tensor_count);
    /* A word without tensor info could be a tensor; here it is a scalar. */
    if (task != GBX_NO_TASK && call->tensor_count < signature->tensor_count)
        (void)gbx_check_signatures(&graph->limits, task, &kernels, &args, &graph->error);
}

gbx_status gbx_runtime_call(const gbx_runtime_request *request, gbx_call_result *out_result) {
    const gbx_call *call = request->call;
    gbx_host_graph *graph;
    if ((call->tensor_count && !call->tensors) || (call->scalar_count && !call->scalars))
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "calling: tensor_count or scalar_count is set, but its array is NULL");
    if (call->tensor_count > GBX_MAX_TENSOR_ARGS || call->scalar_count > GBX_MAX_SCALAR_ARGS)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "calling with %" PRIu32 " tensors and %" PRIu32
                        " scalars: at most %d of each are possible",
                        call->tensor_count, call->scalar_count, GBX_MAX_TENSOR_ARGS);
    GBX_TRY(gbx_host_graph_create(request, &graph));
    add_call(graph, call);
    gbx_status status = gbx_host_graph_launch(graph, out_result);
    return gbx_status_first(status, gbx_host_graph_destroy(graph));
}
