#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "chip/host/chip.h"

/* How often the host looks whether a chip that has not rung is still alive. */
#define LOOK_NS (200 * GBX_NS_PER_MS)
/* The host waits this much longer than the chip's own watchdog, which reports first. */
#define SILENCE_MARGIN_NS (3 * GBX_NS_PER_SECOND)

static gbx_status read_control(gbx_chip *chip, size_t offset, void *to, size_t bytes) {
    return gbx_chip_ops(chip)->copy_out(chip->hal, to, chip->control + offset, bytes);
}

/* --- how it failed: each marks the chip as failed and fills in chip->fault --- */

enum { PLACE_BYTES = 256 };

static const char *const core_names[GBX_CORES_PER_BLOCK] = {"AIC", "AIV0", "AIV1"};

static const char *signal_name(uint32_t number, char buffer[24]) {
    const char *abbreviation = number < NSIG ? sigabbrev_np((int)number) : NULL;
    if (abbreviation)
        snprintf(buffer, 24, "SIG%s", abbreviation);
    else
        snprintf(buffer, 24, "signal %" PRIu32, number);
    return buffer;
}

/*
 * "kernel add (func 3) of task 17 on core 4 (AIV0 of chip block 1), task block 2 of 8". Takes any
 * numbers.
 */
static void describe_place(const gbx_chip *chip, gbx_chip_place at, char out_text[PLACE_BYTES]) {
    const char *name = at.func_id < GBX_MAX_KERNELS ? chip->kernels[at.func_id].name : "";
    bool is_core = at.core_id < chip->blocks * GBX_CORES_PER_BLOCK;
    snprintf(out_text, PLACE_BYTES,
             "kernel %s (func %" PRIu32 ") of task %" PRIu64 " on core %" PRIu32
             " (%s of chip block %" PRIu32 "), task block %" PRIu32 " of %" PRIu32,
             name[0] ? name : "unknown", at.func_id, at.task_id, at.core_id,
             is_core ? core_names[at.core_id % GBX_CORES_PER_BLOCK] : "no core",
             at.core_id / GBX_CORES_PER_BLOCK, at.block_idx, at.block_num);
}

static const gbx_chip_fault unknown_fault = {.place = {.func_id = GBX_NO_KERNEL}};

/* Keeps what the chip reported, but for unknown kinds. */
static void note_fault(gbx_chip *chip, const gbx_fault *fault) {
    uint32_t kind = fault->kind;
    bool is_of_core = (fault->core_id != GBX_NO_CORE && kind != GBX_FAULT_ORCHESTRATION &&
                       kind != GBX_FAULT_ORCHESTRATION_HANG) ||
                      kind == GBX_FAULT_GUARD;
    chip->fault = unknown_fault;
    chip->fault.kind = kind <= GBX_FAULT_GUARD ? (gbx_fault_kind)kind : GBX_FAULT_NONE;
    chip->fault.signal = fault->signal;
    if (fault->address_kind <= GBX_ADDRESS_IMPOSSIBLE)
        chip->fault.address_kind = (gbx_address_kind)fault->address_kind;
    if (chip->fault.address_kind == GBX_ADDRESS_KNOWN)
        chip->fault.address = fault->address;
    if (is_of_core)
        chip->fault.place = (gbx_chip_place){fault->task_id, fault->func_id, fault->core_id,
                                             fault->block_idx, fault->block_num};
}

static void describe_faulty(const gbx_chip *chip, const gbx_fault *fault,
                            char out_text[PLACE_BYTES]) {
    uint32_t kind = fault->kind;
    if (kind == GBX_FAULT_HANG && fault->core_id == GBX_NO_CORE)
        snprintf(out_text, PLACE_BYTES, "the chip's scheduler");
    else if (kind == GBX_FAULT_ORCHESTRATION || kind == GBX_FAULT_ORCHESTRATION_HANG ||
             (kind == GBX_FAULT_THREAD && fault->core_id == GBX_NO_CORE))
        snprintf(out_text, PLACE_BYTES, "the orchestration");
    else
        describe_place(chip,
                       (gbx_chip_place){fault->task_id, fault->func_id, fault->core_id,
                                        fault->block_idx, fault->block_num},
                       out_text);
}

/* The one sentence for a fault that the chip reported. */
static gbx_status report_fault(gbx_chip *chip, gbx_code code) {
    chip->failure = code;
    gbx_fault fault;
    char what[PLACE_BYTES];
    char name[24];
    char where[64] = "";
    GBX_TRY(read_control(chip, offsetof(gbx_control_block, fault), &fault, sizeof fault));
    note_fault(chip, &fault);
    if (fault.kind == GBX_FAULT_GUARD)
        return gbx_fail(code, "a guard zone was overwritten, and the run was stopped; the findings "
                              "name the tasks");
    describe_faulty(chip, &fault, what);
    if (code == GBX_DEVICE_HUNG && fault.other_cores > 0)
        return gbx_fail(code,
                        "%s made no progress for %.1f s, nor did %" PRIu32
                        " other core%s; they wait forever, or need a longer timeout",
                        what, (double)fault.running_ns / 1e9, fault.other_cores,
                        fault.other_cores == 1 ? "" : "s");
    if (code == GBX_DEVICE_HUNG)
        return gbx_fail(
            code, "%s made no progress for %.1f s; it loops forever, or needs a longer timeout",
            what, (double)fault.running_ns / 1e9);
    if (fault.kind == GBX_FAULT_THREAD)
        return gbx_fail(code, "%s ended its thread: pthread_exit; it must return instead", what);
    if (fault.address_kind == GBX_ADDRESS_KNOWN)
        snprintf(where, sizeof where, " at address 0x%" PRIx64, fault.address);
    else if (fault.address_kind == GBX_ADDRESS_IMPOSSIBLE)
        snprintf(where, sizeof where, " at an invalid address");
    const char *meaning = fault.signal < NSIG ? sigdescr_np((int)fault.signal) : NULL;
    return gbx_fail(code, "%s raised %s (%s)%s", what, signal_name(fault.signal, name),
                    meaning ? meaning : "unknown", where);
}

/* The kernels that were running when the chip ended: the first by name, the others by number. */
static gbx_status describe_running(gbx_chip *chip, char *text, size_t bytes) {
    gbx_core_activity cores[GBX_MAX_CORES];
    uint32_t running_count = 0;
    uint64_t magic;
    text[0] = '\0';
    chip->fault = unknown_fault;
    GBX_TRY(read_control(chip, offsetof(gbx_control_block, header.magic), &magic, sizeof magic));
    /* The chip never writes the magic: a kernel that did has overwritten the rest, too. */
    if (magic != GBX_CONTROL_MAGIC) {
        snprintf(text, bytes, " after a kernel had overwritten its control block");
        return NULL;
    }
    GBX_TRY(read_control(chip, offsetof(gbx_control_block, cores), cores, sizeof cores));
    for (uint32_t i = 0; i < chip->blocks * GBX_CORES_PER_BLOCK; ++i) {
        const gbx_core_activity *core = &cores[i];
        if (!core->is_running || running_count++ > 0)
            continue;
        char where[PLACE_BYTES];
        chip->fault.place =
            (gbx_chip_place){core->task_id, core->func_id, i, core->block_idx, core->block_num};
        describe_place(chip, chip->fault.place, where);
        snprintf(text, bytes, " while running %s", where);
    }
    size_t used = strlen(text);
    if (running_count > 1)
        snprintf(text + used, bytes - used, " and %" PRIu32 " more", running_count - 1);
    return NULL;
}

/* The same for a chip process that ended. */
static gbx_status report_ending(gbx_chip *chip, const gbx_hal_event *ending) {
    chip->failure = GBX_DEVICE_LOST;
    gbx_fault fault;
    char running[PLACE_BYTES + 64];
    char how[64];
    char name[24];
    GBX_TRY(read_control(chip, offsetof(gbx_control_block, fault), &fault, sizeof fault));
    GBX_TRY(describe_running(chip, running, sizeof running));
    chip->fault.signal = (uint32_t)ending->exit_signal;
    if (fault.kind == GBX_FAULT_LOADING || fault.kind == GBX_FAULT_OUTSIDE ||
        fault.kind == GBX_FAULT_LINK)
        chip->fault.kind = fault.kind;
    if (ending->exit_signal)
        snprintf(how, sizeof how, "was killed by %s",
                 signal_name((uint32_t)ending->exit_signal, name));
    else if (ending->exit_code >= 0)
        snprintf(how, sizeof how, "exited with code %d", ending->exit_code);
    else
        snprintf(how, sizeof how, "ended (the host reaped it)");
    const char *where = "";
    if (fault.kind == GBX_FAULT_LOADING)
        where = " in a constructor of the shared object being loaded";
    else if (fault.kind == GBX_FAULT_OUTSIDE)
        where = " on a thread that is not a core of the chip";
    else if (fault.kind == GBX_FAULT_LINK)
        where = " because a kernel had closed its link to the host";
    return gbx_fail(GBX_DEVICE_LOST, "the chip process %s%s%s; open another chip to continue", how,
                    where, running);
}

/* The same for a chip that no longer answers. */
static gbx_status report_silence(gbx_chip *chip, int64_t silent_ns) {
    chip->failure = GBX_DEVICE_HUNG;
    char running[PLACE_BYTES + 64];
    GBX_TRY(describe_running(chip, running, sizeof running));
    return gbx_fail(GBX_DEVICE_HUNG,
                    "the chip process has not answered for %.1f s%s; is it stopped? Close it and "
                    "open another",
                    (double)silent_ns / 1e9, running);
}

/* --- running --- */

/* A launch that has ended counts even if the chip did not ring, or has ended since. */
static gbx_status await_end(gbx_chip *chip, const gbx_chip_launch_config *config,
                            gbx_control_header *out_header) {
    int64_t patience_ns = (int64_t)config->timeout_ms * GBX_NS_PER_MS + SILENCE_MARGIN_NS;
    int64_t heard_ns = gbx_clock_ns();
    int64_t looked_ns = heard_ns;
    uint64_t last_heartbeat = 0;
    for (;;) {
        gbx_hal_event event;
        uint64_t finished_launch;
        GBX_TRY(gbx_chip_ops(chip)->wait(chip->hal, LOOK_NS, &event));
        /* Read first, on its own: it pairs with the chip's release, so the rest is complete. */
        GBX_TRY(read_control(chip, offsetof(gbx_control_block, header.finished_launch),
                             &finished_launch, sizeof finished_launch));
        if (finished_launch == chip->launches)
            return read_control(chip, 0, out_header, sizeof *out_header);
        if (event.kind == GBX_HAL_LOST)
            return report_ending(chip, &event);
        if (config->listener)
            config->listener->attend(config->listener->context);
        uint64_t heartbeat;
        uint64_t tasks_so_far;
        GBX_TRY(read_control(chip, offsetof(gbx_control_block, heartbeat), &heartbeat,
                             sizeof heartbeat));
        GBX_TRY(read_control(chip, offsetof(gbx_control_block, tasks_so_far), &tasks_so_far,
                             sizeof tasks_so_far));
        if (config->progress)
            config->progress(config->progress_context, tasks_so_far);
        int64_t now_ns = gbx_clock_ns();
        /* Time in which the host itself was stopped does not count. */
        int64_t away_ns = now_ns - looked_ns - 5 * LOOK_NS;
        looked_ns = now_ns;
        if (away_ns > 0)
            heard_ns += away_ns;
        if (heartbeat != last_heartbeat) {
            last_heartbeat = heartbeat;
            heard_ns = now_ns;
        } else if (now_ns - heard_ns > patience_ns) {
            return report_silence(chip, now_ns - heard_ns);
        }
    }
}

gbx_status gbx_chip_read_message(gbx_chip *chip, void *to, size_t bytes) {
    return read_control(chip, offsetof(gbx_control_block, message), to, bytes);
}

static gbx_status describe_end(gbx_chip *chip, const gbx_control_header *header) {
    char message[sizeof((gbx_control_block *)0)->message];
    if (header->magic != GBX_CONTROL_MAGIC) {
        chip->failure = GBX_DEVICE_FAULT;
        chip->fault = unknown_fault;
        return gbx_fail(GBX_DEVICE_FAULT,
                        "waiting for the chip: a kernel has overwritten its control block; look "
                        "for a store to a wild address");
    }
    switch (header->code) {
    case GBX_OK:
        return NULL;
    case GBX_DEVICE_FAULT:
    case GBX_DEVICE_HUNG:
        return report_fault(chip, (gbx_code)header->code);
    case GBX_BAD_KERNEL:
    case GBX_EXHAUSTED:
        GBX_TRY(gbx_chip_read_message(chip, message, sizeof message));
        message[sizeof message - 1] = '\0';
        for (char *c = message; *c; ++c) /* safe to print */
            if ((unsigned char)*c < ' ' && *c != '\n')
                *c = '?';
        return gbx_fail((gbx_code)header->code, "%s", message);
    case GBX_DEVICE_LOST:
        chip->failure = GBX_DEVICE_LOST;
        return gbx_fail(GBX_DEVICE_LOST,
                        "the chip failed at the end of the previous launch; open another");
    case GBX_BAD_GRAPH:
        return gbx_fail(GBX_BAD_GRAPH, "the chip found an error in the graph");
    default:
        chip->failure = GBX_INTERNAL;
        return gbx_fail(GBX_INTERNAL, "the chip refused the launch with code %" PRIu32,
                        header->code);
    }
}

gbx_status gbx_chip_launch(gbx_chip *chip, const gbx_chip_launch_config *config,
                           gbx_call_result *out_result) {
    static const char zeros[sizeof(gbx_fault)];
    const gbx_hal_ops *ops = gbx_chip_ops(chip);
    gbx_hal_event event;
    chip->fault = unknown_fault;
    if (config->listener)
        GBX_TRY(config->listener->prepare(config->listener->context));
    else if (config->entry != GBX_ENTRY_LOAD_KERNEL)
        ops->visit(chip->hal, NULL, NULL); /* kernels may write everywhere: nothing is new */
    GBX_TRY(ops->wait(chip->hal, 0, &event));
    if (event.kind == GBX_HAL_LOST) /* reported before the control block is cleared */
        return report_ending(chip, &event);
    GBX_TRY(ops->copy_in(chip->hal, chip->scratch, config->payload, config->payload_bytes));
    GBX_TRY(ops->copy_in(chip->hal, chip->control + offsetof(gbx_control_block, fault), zeros,
                         sizeof(gbx_fault)));
    GBX_TRY(
        ops->copy_in(chip->hal, chip->control + offsetof(gbx_control_block, message), zeros, 8));
    gbx_launch_args launch = {.launch_id = ++chip->launches,
                              .control_block = chip->control,
                              .payload = chip->scratch,
                              .payload_bytes = config->payload_bytes,
                              .entry = config->entry,
                              .timeout_ms = config->timeout_ms};
    if (config->listener) {
        launch.dump_data_base = config->listener->dump_data_base;
        launch.dump_flags = config->listener->dump_flags;
        launch.guard_data_base = config->listener->guard_data_base;
    }
    gbx_status status = ops->launch(chip->hal, &launch);
    /* If the chip is gone, the wait finds out how it ended. */
    if (status && gbx_status_code(status) != GBX_DEVICE_LOST)
        return status;
    gbx_status_free(status);
    gbx_control_header header = {0};
    GBX_TRY(await_end(chip, config, &header));
    if (out_result)
        *out_result = (gbx_call_result){.device_ns = header.device_ns,
                                        .tasks = header.task_count,
                                        .dispatches = header.dispatch_count};
    return describe_end(chip, &header);
}
