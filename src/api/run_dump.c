#include "api/run_dump.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/runtime.h>

#include "base/log.h"
#include "base/memory.h"
#include "text/names.h"

static void attend(void *context) {
    const gbx_run_dump *dump = context;
    if (dump->session)
        gbx_dump_session_attend(dump->session);
}

static gbx_status receive(void *context, const gbx_run_args *run) {
    const gbx_run_dump *dump = context;
    gbx_guard_session_receive(dump->guard, run);
    return dump->session ? gbx_dump_session_receive(dump->session, run) : NULL;
}

static void note_copy(void *context, uint64_t device_address, const void *host_pointer) {
    gbx_guard_session_note_copy(((const gbx_run_dump *)context)->guard, device_address,
                                host_pointer);
}

static gbx_status prepare(void *context) {
    return gbx_guard_session_prepare(((const gbx_run_dump *)context)->guard);
}

static void conclude(void *context, const gbx_final_tensor *tensors, size_t count,
                     bool is_in_flight) {
    const gbx_run_dump *dump = context;
    if (dump->session)
        gbx_dump_session_conclude(dump->session, tensors, count, is_in_flight);
}

static void list_kernels(const gbx_chip *chip, gbx_run_info *run) {
    for (uint32_t i = 0; i < GBX_MAX_KERNELS; ++i) {
        const gbx_kernel_entry *entry = &chip->kernels[i];
        if (!entry->name[0])
            continue;
        run->kernels[run->kernel_count++] =
            (gbx_run_kernel){.func_id = i,
                             .name = entry->name,
                             .core_type = gbx_name_of(&gbx_core_types, entry->core),
                             .declared = entry->signature,
                             .arg_names = entry->arg_names,
                             .object_path = entry->object_path,
                             .origin = entry->origin,
                             .compile_flags = entry->compile_flags,
                             .link_flags = entry->link_flags};
    }
}

static void list_arguments(const gbx_run *from, gbx_run_info *run) {
    for (uint32_t i = 0; i < from->tensor_count; ++i)
        run->arguments[run->argument_count++] = (gbx_run_argument){
            .name = from->tensors[i].name, .role = gbx_name_of(&gbx_roles, from->tensors[i].role)};
    for (uint32_t i = 0; i < from->scalar_count; ++i)
        run->arguments[run->argument_count++] =
            (gbx_run_argument){.name = from->scalar_names ? from->scalar_names[i] : NULL,
                               .role = gbx_name_of(&gbx_parameters, GBX_PARAMETER_SCALAR),
                               .dtype = from->scalar_dtypes ? from->scalar_dtypes[i] : 0};
}

static gbx_status begin(const gbx_runtime_request *request, gbx_run_dump *dump) {
    gbx_chip *chip = request->chip;
    gbx_dump_session_config config = {
        .hal = chip->hal,
        .level = request->config->enable_dump_tensor,
        .has_args = request->config->enable_dump_args,
        .has_orchestration = request->entry != NULL,
        .options = &request->config->dump,
        .run = {.runtime = request->runtime->name,
                .device = chip->device == GBX_DEVICE_PROCESS ? "process" : "thread",
                .blocks = chip->blocks,
                .threads = chip->aicpu_threads,
                .kernels = calloc(GBX_MAX_KERNELS, sizeof(gbx_run_kernel)),
                .arguments =
                    calloc(GBX_MAX_RUN_TENSORS + GBX_MAX_RUN_SCALARS, sizeof(gbx_run_argument))}};
    if (!config.run.kernels || !config.run.arguments) {
        gbx_run_info_free(&config.run);
        return gbx_fail_memory("dumping");
    }
    list_kernels(chip, &config.run);
    list_arguments(request->run, &config.run);
    return gbx_dump_session_begin(&config, &dump->session);
}

/* What the guard does; 0 where there is neither dump nor guard. */
static gbx_status choose_guard(gbx_guard_mode mode, bool has_dump, gbx_guard_action *out_action) {
    if (mode < GBX_GUARD_DEFAULT || mode > GBX_GUARD_STOP)
        return gbx_fail(GBX_INVALID_ARGUMENT, "running: unknown guard mode %d", (int)mode);
    if (mode == GBX_GUARD_DEFAULT)
        mode = has_dump ? GBX_GUARD_REPORT : GBX_GUARD_OFF;
    *out_action = mode == GBX_GUARD_OFF && !has_dump ? 0 : (gbx_guard_action)mode;
    return NULL;
}

gbx_status gbx_run_dump_begin(gbx_runtime_request *request, gbx_run_dump *dump) {
    bool has_dump = request->config->enable_dump_tensor || request->config->enable_dump_args;
    gbx_guard_action action;
    *dump = (gbx_run_dump){.chip = request->chip, .run = request->run};
    GBX_TRY(choose_guard(request->config->guard, has_dump, &action));
    if (!action)
        return NULL;
    GBX_TRY(gbx_guard_session_begin(request->chip->hal, action, &dump->guard));
    dump->listener = (gbx_chip_listener){
        .context = dump,
        .guard_data_base = gbx_guard_session_data_base(dump->guard),
        .has_zones = action != GBX_GUARD_ACTION_NONE,
        .attend = attend,
        .receive = receive,
        .conclude = conclude,
        .note_copy = note_copy,
        .prepare = prepare,
    };
    request->listener = &dump->listener;
    if (!has_dump)
        return NULL;
    gbx_status status = begin(request, dump);
    if (status)
        return gbx_status_first(status, gbx_guard_session_end(dump->guard));
    dump->listener.dump_data_base = gbx_dump_session_data_base(dump->session);
    dump->listener.dump_flags = gbx_dump_session_flags(dump->session);
    return NULL;
}

/* The numbers of the chip may change; those of the journal never do. */
static gbx_record_outcome outcome_of(const gbx_chip_fault *fault, gbx_code code) {
    static const gbx_outcome_fault faults[] = {
        [GBX_FAULT_NONE] = GBX_OUTCOME_NO_FAULT,
        [GBX_FAULT_SIGNAL] = GBX_OUTCOME_SIGNAL,
        [GBX_FAULT_HANG] = GBX_OUTCOME_HANG,
        [GBX_FAULT_LOADING] = GBX_OUTCOME_LOADING,
        [GBX_FAULT_OUTSIDE] = GBX_OUTCOME_OUTSIDE,
        [GBX_FAULT_THREAD] = GBX_OUTCOME_THREAD_END,
        [GBX_FAULT_LINK] = GBX_OUTCOME_LINK,
        [GBX_FAULT_ORCHESTRATION] = GBX_OUTCOME_ORCHESTRATION,
        [GBX_FAULT_ORCHESTRATION_HANG] = GBX_OUTCOME_ORCHESTRATION_HANG,
        [GBX_FAULT_GUARD] = GBX_OUTCOME_GUARD};
    static const gbx_outcome_address addresses[] = {[GBX_ADDRESS_NONE] = GBX_OUTCOME_ADDRESS_NONE,
                                                    [GBX_ADDRESS_KNOWN] = GBX_OUTCOME_ADDRESS_KNOWN,
                                                    [GBX_ADDRESS_IMPOSSIBLE] =
                                                        GBX_OUTCOME_ADDRESS_IMPOSSIBLE};
    bool has_kernel = fault->place.func_id != GBX_NO_KERNEL;
    return (gbx_record_outcome){.code = code,
                                .fault = faults[fault->kind],
                                .signal = fault->signal,
                                .task_id = has_kernel ? fault->place.task_id : 0,
                                .func_id =
                                    has_kernel ? fault->place.func_id : GBX_OUTCOME_NO_KERNEL,
                                .core_id = has_kernel ? fault->place.core_id : 0,
                                .block_idx = has_kernel ? fault->place.block_idx : 0,
                                .block_num = has_kernel ? fault->place.block_num : 0,
                                .address = fault->address,
                                .address_kind = addresses[fault->address_kind]};
}

/* Into the result, and into the dump where there is one. */
static gbx_status take_findings(gbx_run_dump *dump, gbx_call_result *result) {
    gbx_guard_result *read = malloc(sizeof *read);
    if (!read)
        return gbx_fail_memory("reading the findings of a run");
    gbx_status status = gbx_guard_session_read(dump->guard, read);
    result->finding_count = read->count;
    for (uint32_t i = 0; i < read->kept && i < GBX_RESULT_FINDINGS; ++i)
        result->findings[i] = read->findings[i];
    if (dump->session)
        gbx_dump_session_add_findings(dump->session, read->findings, read->kept);
    free(read);
    return gbx_status_first(status, gbx_guard_session_end(dump->guard));
}

/* The sentence of a run that a finding has ended is that of the finding; consumes `status`. */
static gbx_status name_finding(const gbx_run_dump *dump, gbx_status status,
                               const gbx_call_result *result) {
    char text[2048];
    if (dump->chip->fault.kind != GBX_FAULT_GUARD || result->finding_count == 0 || !status)
        return status;
    gbx_finding_describe(dump->chip, dump->run, &result->findings[0], text, sizeof text);
    gbx_code code = gbx_status_code(status);
    gbx_status_free(status);
    return gbx_fail(code, "%s; the run was stopped (--guard=stop)", text);
}

gbx_status gbx_run_dump_end(gbx_run_dump *dump, gbx_status status, gbx_call_result *result) {
    if (dump->guard)
        status = gbx_status_first(status, take_findings(dump, result));
    status = name_finding(dump, status, result);
    if (!dump->session)
        return status;
    gbx_dump_ending ending = {.error = status ? gbx_status_message(status) : NULL,
                              .is_lost = gbx_status_code(status) == GBX_DEVICE_LOST,
                              .outcome = outcome_of(&dump->chip->fault, gbx_status_code(status)),
                              .tasks = result->tasks,
                              .dispatches = result->dispatches,
                              .device_ns = result->device_ns};
    gbx_status lost = gbx_dump_session_end(dump->session, &ending, &result->dump);
    /* The run's own failure is returned; what its dump lacks is only logged. */
    if (status && lost)
        gbx_log_error("%s", gbx_status_message(lost));
    return gbx_status_first(status, lost);
}
