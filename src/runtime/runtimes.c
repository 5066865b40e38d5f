#include "runtime/runtimes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/checked.h"
#include "chip/host/chip.h"
#include "runtime/graph.h"

static const gbx_runtime *const runtimes[] = {&gbx_tensormap_and_ringbuffer, &gbx_host_build_graph,
                                              &gbx_aicpu_build_graph};

enum { RUNTIME_COUNT = sizeof runtimes / sizeof runtimes[0], PAGE_BYTES = 4096 };

const gbx_builder *gbx_runtime_builder(uint32_t entry) {
    for (size_t i = 0; i < RUNTIME_COUNT; ++i)
        if (runtimes[i]->entry == entry)
            return runtimes[i]->builder;
    return NULL;
}

const char *gbx_runtime_name(uint32_t index) {
    return index < RUNTIME_COUNT ? runtimes[index]->name : NULL;
}

const char *gbx_runtime_description(uint32_t index) {
    return index < RUNTIME_COUNT ? runtimes[index]->description : NULL;
}

const gbx_runtime *gbx_runtime_find(const char *name) {
    for (size_t i = 0; i < RUNTIME_COUNT; ++i)
        if (!name || strcmp(runtimes[i]->name, name) == 0)
            return runtimes[i];
    return NULL;
}

gbx_status gbx_runtime_launch(const gbx_runtime_request *request, gbx_graph_launch *launch,
                              gbx_call_result *out_result) {
    gbx_chip *chip = request->chip;
    gbx_hal_caps caps;
    gbx_chip_ops(chip)->caps(chip->hal, &caps);
    launch->global = (gbx_global_context){
        .gm_base = caps.gm_base, .gm_bytes = caps.gm_bytes, .blocks = chip->blocks};
    uint32_t timeout_ms = request->config->timeout_ms;
    gbx_chip_launch_config config = {.entry = request->runtime->entry,
                                     .timeout_ms = timeout_ms ? timeout_ms : GBX_DEFAULT_TIMEOUT_MS,
                                     .payload = launch,
                                     .payload_bytes = sizeof *launch,
                                     .progress = request->config->progress,
                                     .progress_context = request->config->progress_context,
                                     .listener = request->listener};
    gbx_status status = gbx_chip_launch(chip, &config, out_result);
    gbx_code code = gbx_status_code(status);
    bool has_failed = code == GBX_BAD_GRAPH || code == GBX_DEVICE_HUNG || code == GBX_DEVICE_FAULT;
    if (!has_failed && (code != GBX_OK || !launch->has_loose_signatures))
        return status;
    gbx_graph_message message = {.error.kind = GBX_GRAPH_OK};
    gbx_status read = gbx_chip_read_message(chip, &message, sizeof message);
    if (launch->has_loose_signatures && !read)
        gbx_signature_warnings_report(chip, &message.warnings, out_result);
    if (!has_failed)
        return read;
    const gbx_graph_error error = message.error;
    if (code != GBX_BAD_GRAPH && (read || error.kind == GBX_GRAPH_OK))
        return gbx_status_first(status, read);
    gbx_status wrong = read ? read : gbx_graph_error_status(chip, request->runtime->name, &error);
    if (code != GBX_BAD_GRAPH)
        status = gbx_status_annotate(status, "after an error in the graph (%s)",
                                     gbx_status_message(wrong));
    gbx_status_free(code == GBX_BAD_GRAPH ? status : wrong);
    return code == GBX_BAD_GRAPH ? wrong : status;
}

/* --- orchestrations on the chip --- */

gbx_status gbx_runtime_free_memory(const gbx_runtime_request *request, uint64_t *out_bytes) {
    const gbx_run *run = request->run;
    gbx_hal_caps caps;
    uint64_t wanted = 0;
    gbx_chip_ops(request->chip)->caps(request->chip->hal, &caps);
    for (uint32_t i = 0; i < run->tensor_count; ++i)
        wanted += gbx_tensor_payload_bytes(&run->tensors[i].tensor) + PAGE_BYTES;
    if (wanted >= caps.gm_free)
        return gbx_fail(GBX_EXHAUSTED,
                        "running: the tensors take %" PRIu64 " bytes of global memory, %" PRIu64
                        " are free; open the chip with more (--gm)",
                        wanted, caps.gm_free);
    /* Tensors go where they fit best: at least this is left in one piece. */
    *out_bytes = caps.gm_largest > wanted ? caps.gm_largest - wanted : 0;
    if (*out_bytes < caps.gm_largest / 2 && caps.gm_free - wanted > caps.gm_largest)
        *out_bytes = caps.gm_largest / 2;
    return NULL;
}

/* Global memory that a run on the chip holds. */
typedef struct holdings {
    uint64_t addresses[GBX_MAX_RUN_TENSORS + 2];
    uint32_t count;
} holdings;

static gbx_status take(const gbx_runtime_request *request, holdings *held, uint64_t bytes,
                       uint64_t *out_address) {
    GBX_TRY(gbx_gm_alloc(request->chip, bytes, out_address));
    held->addresses[held->count++] = *out_address;
    return NULL;
}

/* Memory in which the chip allocates. With a guard as much again, for zones: an allocation and a
 * zone are at least one granule each. */
static gbx_status take_region(const gbx_runtime_request *request, holdings *held, uint64_t bytes,
                              uint64_t apart_bytes, uint64_t *out_spare, uint64_t *out_address) {
    bool has_zones = request->listener && request->listener->has_zones;
    gbx_hal_memory wanted = {.bytes = bytes + apart_bytes,
                             .uncounted_bytes = apart_bytes,
                             .spare_bytes = has_zones ? bytes : 0,
                             .use = GBX_HAL_REGION};
    GBX_TRY(gbx_chip_alloc(request->chip, &wanted, out_address));
    *out_spare = wanted.spare_bytes;
    held->addresses[held->count++] = *out_address;
    return NULL;
}

static gbx_status give_back(const gbx_runtime_request *request, holdings *held) {
    gbx_status status = NULL;
    while (held->count > 0)
        status =
            gbx_status_first(status, gbx_gm_free(request->chip, held->addresses[--held->count]));
    return status;
}

static gbx_status put_tensors(const gbx_runtime_request *request, gbx_graph_launch *launch,
                              holdings *held) {
    const gbx_run *run = request->run;
    for (uint32_t i = 0; i < run->tensor_count; ++i) {
        const gbx_run_tensor *from = &run->tensors[i];
        uint64_t bytes = gbx_tensor_payload_bytes(&from->tensor);
        uint64_t address;
        gbx_status status = take(request, held, bytes, &address);
        if (status)
            return gbx_status_annotate(status, "putting tensor %s on the chip",
                                       from->name ? from->name : "(unnamed)");
        launch->tensors[i] = from->tensor;
        launch->tensors[i].data = address;
        launch->tensors[i].buffer_bytes = bytes;
        /* Outputs too: bytes that the graph does not write stay as they were. */
        GBX_TRY(gbx_gm_copy_in(request->chip, address, (const void *)(uintptr_t)from->tensor.data,
                               bytes));
    }
    if (run->scalar_count)
        memcpy(launch->scalars, run->scalars, run->scalar_count * sizeof *run->scalars);
    launch->tensor_count = run->tensor_count;
    launch->scalar_count = run->scalar_count;
    return NULL;
}

static gbx_status get_outputs(const gbx_runtime_request *request, const gbx_graph_launch *launch) {
    const gbx_run *run = request->run;
    for (uint32_t i = 0; i < run->tensor_count; ++i) {
        const gbx_run_tensor *to = &run->tensors[i];
        if (to->role != GBX_ROLE_INPUT)
            GBX_TRY(gbx_gm_copy_out(request->chip, (void *)(uintptr_t)to->tensor.data,
                                    launch->tensors[i].data,
                                    gbx_tensor_payload_bytes(&to->tensor)));
    }
    return NULL;
}

/* Hands the final tensors to the listener, also after a failure. */
static void conclude(const gbx_runtime_request *request, const gbx_graph_launch *launch,
                     bool is_in_flight) {
    const gbx_run *run = request->run;
    gbx_final_tensor tensors[GBX_MAX_RUN_TENSORS];
    gbx_tensor_piece pieces[GBX_MAX_RUN_TENSORS];
    size_t count = 0;
    for (uint32_t i = 0; i < run->tensor_count; ++i) {
        const gbx_run_tensor *from = &run->tensors[i];
        uint64_t bytes = gbx_tensor_payload_bytes(&from->tensor);
        if (from->role == GBX_ROLE_INPUT)
            continue;
        pieces[count] = (gbx_tensor_piece){.address = launch->tensors[i].data, .bytes = bytes};
        tensors[count] = (gbx_final_tensor){.arg_index = i,
                                            .role = from->role,
                                            .tensor = from->tensor,
                                            .pieces = &pieces[count],
                                            .piece_count = bytes != 0};
        ++count;
    }
    request->listener->conclude(request->listener->context, tensors, count, is_in_flight);
}

static gbx_status run_with(const gbx_runtime_request *request, gbx_graph_launch *launch,
                           holdings *held, gbx_call_result *out_result) {
    GBX_TRY(put_tensors(request, launch, held));
    gbx_status status =
        take_region(request, held, launch->storage_bytes, 2 * (uint64_t)GBX_APART_BYTES,
                    &launch->storage_spare_bytes, &launch->storage);
    launch->storage += GBX_APART_BYTES;
    if (!status && launch->heap_bytes)
        status = take_region(request, held, launch->heap_bytes, 0, &launch->heap_spare_bytes,
                             &launch->heap);
    if (status)
        return gbx_status_annotate(status, "allocating the memory of %s (--gm, --window)",
                                   request->runtime->name);
    if (request->listener) {
        gbx_run_args received = {.tensors = launch->tensors,
                                 .scalars = launch->scalars,
                                 .tensor_count = launch->tensor_count,
                                 .scalar_count = launch->scalar_count};
        GBX_TRY(request->listener->receive(request->listener->context, &received));
    }
    status = gbx_runtime_launch(request, launch, out_result);
    if (request->listener)
        conclude(request, launch, status != NULL);
    return status ? status : get_outputs(request, launch);
}

static gbx_status name_orchestration(const gbx_runtime_request *request, gbx_graph_launch *launch) {
    const gbx_run *run = request->run;
    if (run->function) {
        if (request->chip->device != GBX_DEVICE_THREAD)
            return gbx_fail(GBX_UNSUPPORTED,
                            "running on %s: a function pointer has no meaning in the chip's own "
                            "process; open the chip with GBX_DEVICE_THREAD or give a source",
                            request->runtime->name);
        memcpy(&launch->function, &run->function, sizeof run->function);
        return NULL;
    }
    if ((size_t)snprintf(launch->path, sizeof launch->path, "%s", request->object) >=
            sizeof launch->path ||
        (size_t)snprintf(launch->entry, sizeof launch->entry, "%s", request->entry) >=
            sizeof launch->entry)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "running %s: the path or the name of the entry is too long",
                        request->object);
    return NULL;
}

gbx_status gbx_runtime_run_on_chip(const gbx_runtime_request *request, gbx_graph_launch *launch,
                                   gbx_call_result *out_result) {
    holdings held = {.count = 0};
    launch->has_loose_signatures = request->config->has_loose_signatures;
    GBX_TRY(name_orchestration(request, launch));
    gbx_status status = run_with(request, launch, &held, out_result);
    return gbx_status_first(status, give_back(request, &held));
}
