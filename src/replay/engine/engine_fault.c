#include "replay/engine/internal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "text/names.h"
#include "text/plain_text.h"

enum { SIGNAL_TEXT_BYTES = 24, HOW_BYTES = 96, PLACE_BYTES = 112 };

static const char *signal_name(int number, char buffer[SIGNAL_TEXT_BYTES]) {
    const char *abbreviation = number > 0 && number < NSIG ? sigabbrev_np(number) : NULL;
    if (abbreviation)
        snprintf(buffer, SIGNAL_TEXT_BYTES, "SIG%s", abbreviation);
    else
        snprintf(buffer, SIGNAL_TEXT_BYTES, "signal %d", number);
    return buffer;
}

/* What ran when it ended. */
typedef struct scene {
    uint32_t first; /* of the request's dispatches: the first that ran; UINT32_MAX for none */
    uint32_t running_count;
} scene;

/* "kernel add" and "block 0, aiv0" of a dispatch. */
static const char *kernel_of(const gbx_replay_request *request, uint32_t dispatch) {
    return request->task->kernel_names[request->task->dispatches[dispatch].subtask];
}

static void describe_place(const gbx_replay_request *request, uint32_t dispatch,
                           uint32_t running_count, char out_text[PLACE_BYTES]) {
    const gbx_replay_dispatch *at = &request->task->dispatches[dispatch];
    int used = snprintf(out_text, PLACE_BYTES, "block %" PRIu32 ", %s", at->block_idx,
                        gbx_name_of(&gbx_subtasks, at->subtask));
    if (running_count > 1)
        snprintf(out_text + used, PLACE_BYTES - (size_t)used, ", while %" PRIu32 " more ran",
                 running_count - 1);
}

/* --- each kind --- */

static void tell_signal(const gbx_replay_request *request, const gbx_call_fault *noted,
                        bool is_of_dispatch, gbx_replay_fault *fault) {
    char name[SIGNAL_TEXT_BYTES];
    char where[HOW_BYTES] = "";
    char place[PLACE_BYTES];
    fault->signal = (int)noted->signal;
    fault->has_address = noted->has_address != 0;
    fault->address = fault->has_address ? noted->address : 0;
    if (fault->has_address)
        snprintf(where, sizeof where, " at 0x%" PRIx64, fault->address);
    else if (fault->signal == SIGSEGV)
        snprintf(where, sizeof where, " at an address that no memory can have, or sent by another");
    describe_place(request, fault->dispatch, 1, place);
    const char *form =
        is_of_dispatch ? "kernel %.96s crashed (%s): %s%s"
                       : "a thread that a kernel started crashed while kernel %.96s ran (%s): %s%s";
    snprintf(fault->text, sizeof fault->text, form, kernel_of(request, fault->dispatch), place,
             signal_name(fault->signal, name), where);
}

static void tell_ending(const gbx_replay_request *request, const gbx_replay_reply *reply,
                        uint32_t running_count, gbx_replay_fault *fault) {
    char place[PLACE_BYTES];
    char how[HOW_BYTES];
    char name[SIGNAL_TEXT_BYTES];
    if (reply->ending == GBX_REPLAY_KILLED) {
        fault->signal = reply->value;
        snprintf(how, sizeof how, "with %s", signal_name(reply->value, name));
    } else {
        snprintf(how, sizeof how, "with exit code %d", reply->value);
    }
    describe_place(request, fault->dispatch, 1, place);
    const char *kernel = kernel_of(request, fault->dispatch);
    if (running_count > 1)
        snprintf(fault->text, sizeof fault->text,
                 "one of %" PRIu32
                 " calls that ran ended the process %s (the first of them: kernel "
                 "%.96s, %s)",
                 running_count, how, kernel, place);
    else
        snprintf(fault->text, sizeof fault->text, "kernel %.96s ended the process %s (%s)", kernel,
                 how, place);
}

/* --- all of them --- */

static gbx_status fail_loading(const gbx_replay_request *request, const gbx_replay_reply *reply,
                               const gbx_call_fault *noted) {
    char name[SIGNAL_TEXT_BYTES];
    bool is_noted = atomic_load_explicit(&noted->kind, memory_order_acquire) == GBX_CALL_SIGNAL;
    int number = is_noted ? (int)noted->signal : reply->value;
    const char *how = "ended the process";
    if (reply->ending == GBX_REPLAY_SILENT)
        how = "did not end in time";
    else if (is_noted || reply->ending == GBX_REPLAY_KILLED)
        how = signal_name(number, name);
    return gbx_fail(GBX_BAD_KERNEL,
                    "loading the kernels of task %" PRIu64
                    ": a constructor of a shared object failed: %s",
                    request->task->task, how);
}

/* What it says of itself may be scribbled over by a kernel: numbers are checked. */
gbx_status gbx_replay_fault_tell(const gbx_replay_request *request, const gbx_replay_child *child,
                                 const gbx_replay_reply *reply, int64_t timeout_ns,
                                 gbx_replay_fault *out_fault) {
    const gbx_call_fault *noted = &child->board->fault;
    uint32_t count = gbx_replay_request_count(request);
    uint32_t kind = atomic_load_explicit(&noted->kind, memory_order_acquire);
    scene seen = {.first = UINT32_MAX};
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t state = atomic_load_explicit(&child->board->states[i], memory_order_acquire);
        if (state == GBX_CALL_RUNS && seen.running_count++ == 0)
            seen.first = i;
    }
    if (atomic_load_explicit(&child->board->is_loading, memory_order_relaxed))
        return fail_loading(request, reply, noted);
    bool has_note = reply->ending == GBX_REPLAY_EXITED && reply->value == GBX_CALL_FAULT_EXIT &&
                    (kind == GBX_CALL_SIGNAL || kind == GBX_CALL_THREAD_END);
    bool is_of_dispatch = has_note && noted->dispatch < count;
    uint32_t exiting = atomic_load_explicit(&noted->exiting, memory_order_relaxed) - 1;
    if (reply->ending == GBX_REPLAY_EXITED && !has_note && exiting < count)
        seen = (scene){exiting, 1};
    uint32_t dispatch = is_of_dispatch ? noted->dispatch : seen.first < count ? seen.first : 0;
    *out_fault = (gbx_replay_fault){.is_there = true,
                                    .dispatch = gbx_replay_request_first(request) + dispatch};
    if (has_note && kind == GBX_CALL_SIGNAL) {
        tell_signal(request, noted, is_of_dispatch, out_fault);
    } else if (has_note) {
        char place[PLACE_BYTES];
        describe_place(request, out_fault->dispatch, 1, place);
        snprintf(out_fault->text, sizeof out_fault->text,
                 "kernel %.96s ended the thread it ran on (%s): pthread_exit; it has to return",
                 kernel_of(request, out_fault->dispatch), place);
    } else if (reply->ending == GBX_REPLAY_SILENT) {
        char place[PLACE_BYTES];
        out_fault->is_hang = true;
        describe_place(request, out_fault->dispatch, seen.running_count, place);
        snprintf(out_fault->text, sizeof out_fault->text,
                 "kernel %.96s did not return within %.6g s (%s)",
                 kernel_of(request, out_fault->dispatch), (double)timeout_ns / 1e9, place);
    } else {
        tell_ending(request, reply, seen.running_count, out_fault);
    }
    gbx_text_make_plain(out_fault->text);
    return NULL;
}
