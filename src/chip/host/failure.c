#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "chip/host/chip.h"

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
 * "kernel add (func 3) of task 17 on core 4 (AIV0 of chip block 1), task block 2 of 8", whatever
 * the numbers are.
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

static gbx_status read_fault(gbx_chip *chip, gbx_fault *out_fault) {
    return gbx_chip_ops(chip)->copy_out(chip->hal, out_fault,
                                        chip->control + offsetof(gbx_control_block, fault),
                                        sizeof *out_fault);
}

static const gbx_chip_fault unknown_fault = {.place = {.func_id = GBX_NO_KERNEL}};

gbx_status gbx_chip_report_scribbled(gbx_chip *chip) {
    chip->failure = GBX_DEVICE_FAULT;
    chip->fault = unknown_fault;
    return gbx_fail(GBX_DEVICE_FAULT,
                    "waiting for the chip: a kernel has overwritten its control block; look for a "
                    "store to a wild address");
}

/* The chip never writes the magic: whoever did wrote over the rest too. */
static gbx_status is_scribbled(gbx_chip *chip, bool *out_is_scribbled) {
    uint64_t magic;
    GBX_TRY(gbx_chip_ops(chip)->copy_out(
        chip->hal, &magic, chip->control + offsetof(gbx_control_block, magic), sizeof magic));
    *out_is_scribbled = magic != GBX_CONTROL_MAGIC;
    return NULL;
}

/* What the chip told, without kinds that there are not. */
static void note_fault(gbx_chip *chip, const gbx_fault *fault) {
    uint32_t kind = fault->kind;
    bool is_of_core = fault->core_id != GBX_NO_CORE && kind != GBX_FAULT_ORCHESTRATION &&
                      kind != GBX_FAULT_ORCHESTRATION_HANG;
    chip->fault = unknown_fault;
    chip->fault.kind = kind <= GBX_FAULT_ORCHESTRATION_HANG ? (gbx_fault_kind)kind : GBX_FAULT_NONE;
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

gbx_status gbx_chip_report_fault(gbx_chip *chip, gbx_code code) {
    chip->failure = code;
    gbx_fault fault;
    char what[PLACE_BYTES];
    char name[24];
    char where[64] = "";
    GBX_TRY(read_fault(chip, &fault));
    note_fault(chip, &fault);
    describe_faulty(chip, &fault, what);
    if (code == GBX_DEVICE_HUNG && fault.other_cores > 0)
        return gbx_fail(code,
                        "%s made no progress for %.1f s, nor did %" PRIu32
                        " other core%s; a wait that never ends, or a longer timeout is needed",
                        what, (double)fault.running_ns / 1e9, fault.other_cores,
                        fault.other_cores == 1 ? "" : "s");
    if (code == GBX_DEVICE_HUNG)
        return gbx_fail(code,
                        "%s made no progress for %.1f s; a loop that never ends, or a longer "
                        "timeout is needed",
                        what, (double)fault.running_ns / 1e9);
    if (fault.kind == GBX_FAULT_THREAD)
        return gbx_fail(code, "%s ended the thread it ran on (pthread_exit); it has to return",
                        what);
    if (fault.address_kind == GBX_ADDRESS_KNOWN)
        snprintf(where, sizeof where, " at address 0x%" PRIx64, fault.address);
    else if (fault.address_kind == GBX_ADDRESS_IMPOSSIBLE)
        snprintf(where, sizeof where, " at an address that no memory can have");
    const char *meaning = fault.signal < NSIG ? sigdescr_np((int)fault.signal) : NULL;
    return gbx_fail(code, "%s raised %s (%s)%s", what, signal_name(fault.signal, name),
                    meaning ? meaning : "unknown", where);
}

/* The kernels that were running when the chip ended: the first by name, the others by number. */
static gbx_status describe_running(gbx_chip *chip, char *text, size_t bytes) {
    gbx_core_activity cores[GBX_MAX_CORES];
    uint32_t running_count = 0;
    bool has_nothing_to_tell = true;
    text[0] = '\0';
    chip->fault = unknown_fault;
    GBX_TRY(is_scribbled(chip, &has_nothing_to_tell));
    if (has_nothing_to_tell) {
        snprintf(text, bytes, " after a kernel had overwritten its control block");
        return NULL;
    }
    GBX_TRY(gbx_chip_ops(chip)->copy_out(
        chip->hal, cores, chip->control + offsetof(gbx_control_block, cores), sizeof cores));
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

gbx_status gbx_chip_report_ending(gbx_chip *chip, const gbx_hal_event *ending) {
    chip->failure = GBX_DEVICE_LOST;
    gbx_fault fault;
    char running[PLACE_BYTES + 64];
    char how[64];
    char name[24];
    GBX_TRY(read_fault(chip, &fault));
    GBX_TRY(describe_running(chip, running, sizeof running));
    chip->fault.signal = (uint32_t)ending->exit_signal;
    if (fault.kind == GBX_FAULT_LOADING || fault.kind == GBX_FAULT_OUTSIDE ||
        fault.kind == GBX_FAULT_LINK)
        chip->fault.kind = fault.kind;
    if (ending->exit_signal)
        snprintf(how, sizeof how, "was ended by %s",
                 signal_name((uint32_t)ending->exit_signal, name));
    else if (ending->exit_code >= 0)
        snprintf(how, sizeof how, "exited with code %d", ending->exit_code);
    else
        snprintf(how, sizeof how, "ended (the host reaped it)");
    const char *where = "";
    if (fault.kind == GBX_FAULT_LOADING)
        where = " in a constructor of the shared object being loaded";
    else if (fault.kind == GBX_FAULT_OUTSIDE)
        where = " on a thread that is no core of the chip";
    else if (fault.kind == GBX_FAULT_LINK)
        where = " because a kernel had closed its link to the host";
    return gbx_fail(GBX_DEVICE_LOST, "the chip process %s%s%s; open another chip to go on", how,
                    where, running);
}

gbx_status gbx_chip_report_silence(gbx_chip *chip, int64_t silent_ns) {
    chip->failure = GBX_DEVICE_HUNG;
    char running[PLACE_BYTES + 64];
    GBX_TRY(describe_running(chip, running, sizeof running));
    return gbx_fail(GBX_DEVICE_HUNG,
                    "the chip process has not answered for %.1f s%s; is it stopped? Close it and "
                    "open another",
                    (double)silent_ns / 1e9, running);
}
