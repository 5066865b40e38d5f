/* Why a task of a dump cannot be called again. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "replay/internal.h"
#include "store/reader.h"
#include "text/names.h"
#include "text/plain_text.h"

enum { LIST_BYTES = 16384, REASON_BYTES = 128, ADVICE_BYTES = 256 };

/* The options that another run needs so that the task can be called again. */
enum {
    NEEDS_NOTHING = 0,
    NEEDS_FULL = 1u << 0,
    NEEDS_ARGS = 1u << 1,
    NEEDS_LENGTH = 1u << 2,
    NEEDS_DESCRIPTION = 1u << 3
};

/* Whether the run recorded only some arguments. */
static bool is_selective(const gbx_task_slots *slots) {
    const gbx_run_info *run = gbx_reader_run(slots->reader);
    return run->filter_count > 0 || !run->dump_level || strcmp(run->dump_level, "partial") == 0;
}

/* Whether the run ended in the middle of this task, and all before that is recorded. Only a journal
 * shows it. */
static bool is_cut_short(const gbx_task_slots *slots) {
    return gbx_reader_get_origin(slots->reader)->is_journal && !slots->has_done &&
           !slots->has_early_losses && !is_selective(slots);
}

/* For an argument without record. */
static unsigned explain_absence(const gbx_task_slots *slots, const gbx_task_slot *slot,
                                char out_text[REASON_BYTES]) {
    const gbx_run_info *run = gbx_reader_run(slots->reader);
    bool is_lost_early = slot->is_lost && slot->loss_cause != GBX_LOSS_DEVICE;
    if (slot->is_undescribed) {
        snprintf(out_text, REASON_BYTES,
                 "was not described, although the signature of the kernel calls it a tensor");
        return NEEDS_DESCRIPTION;
    }
    if (is_cut_short(slots) && !is_lost_early && !slot->is_mismatched) {
        /* The level of the run is sufficient. */
        bool is_output = slot->is_known && slot->is_tensor && slot->role == GBX_ROLE_OUTPUT;
        snprintf(out_text, REASON_BYTES, "was not recorded: the run ended first%s",
                 is_output ? ", so its address is unknown" : "");
        return is_output ? NEEDS_ARGS : NEEDS_NOTHING;
    }
    if (slot->is_lost)
        snprintf(out_text, REASON_BYTES, "was lost: %s",
                 gbx_name_sentence(&gbx_loss_causes, slot->loss_cause));
    else if (slot->is_mismatched)
        snprintf(out_text, REASON_BYTES, "was skipped: it is misdescribed");
    else if (run->filter_count > 0)
        snprintf(out_text, REASON_BYTES, "was excluded by the filters of the run");
    else if (!run->dump_level)
        snprintf(out_text, REASON_BYTES, "was not recorded: the run had no --dump-tensor");
    else if (strcmp(run->dump_level, "partial") == 0)
        snprintf(out_text, REASON_BYTES, "is not marked, and the dump level is partial");
    else
        snprintf(out_text, REASON_BYTES, "was not recorded");
    return NEEDS_FULL;
}

/* An argument that is read needs its bytes, a tensor its shape; an empty tensor needs no bytes. */
static bool is_there(const gbx_task_slot *slot) {
    if (slot->is_undescribed)
        return false;
    if (!slot->is_tensor)
        return slot->is_known && slot->has_bits;
    if (!slot->has_view)
        return false;
    bool is_complete = slot->role == GBX_ROLE_OUTPUT || slot->is_before_complete;
    return (slot->is_known && is_complete) || gbx_tensor_payload_bytes(&slot->view) == 0;
}

static unsigned explain(const gbx_task_slots *slots, const gbx_task_slot *slot,
                        char out_text[REASON_BYTES]) {
    if (slot->is_undescribed || !slot->is_tensor || !slot->has_before)
        return explain_absence(slots, slot, out_text);
    /* A tensor has a record, but not all its bytes. */
    const gbx_run_info *run = gbx_reader_run(slots->reader);
    uint64_t bytes = gbx_tensor_payload_bytes(&slot->view);
    if (slot->before_flags & GBX_FLAG_OVERWRITTEN)
        snprintf(out_text, REASON_BYTES, "was overwritten before it was captured");
    else if (slot->before_flags & GBX_FLAG_TRUNCATED)
        snprintf(out_text, REASON_BYTES,
                 "is truncated to %" PRIu64 " of %" PRIu64 " bytes (--dump-max-tensor)",
                 slot->before_bytes, bytes);
    else if (slot->before_flags & GBX_FLAG_HAS_PAYLOAD)
        snprintf(out_text, REASON_BYTES, "has %" PRIu64 " bytes of payload instead of %" PRIu64,
                 slot->before_bytes, bytes);
    else
        snprintf(out_text, REASON_BYTES, "has no payload at level %s%s",
                 run->dump_level ? run->dump_level : "none",
                 run->filter_count > 0 ? " with filters" : "");
    return slot->before_flags & GBX_FLAG_TRUNCATED ? NEEDS_FULL | NEEDS_LENGTH : NEEDS_FULL;
}

typedef struct list {
    char text[LIST_BYTES];
    size_t used;
    uint32_t count;
} list;

static void add(list *to, const gbx_replay_argument *argument, const char *reason) {
    char name[48] = "";
    if (argument->name)
        snprintf(name, sizeof name, " (%.40s)", argument->name);
    gbx_text_make_plain(name);
    int length =
        snprintf(to->text + to->used, sizeof to->text - to->used, "%sargument %" PRIu32 "%s %s",
                 to->count ? "; " : "", argument->slot, name, reason);
    to->used += (size_t)length;
    to->count++;
}
static_assert(LIST_BYTES > GBX_REPLAY_MAX_ARGUMENTS * (REASON_BYTES + 48 + 24), "all fit");

/* "run again with --dump-tensor=full --dump-args, without filters": options that the run lacked. */
static const char *advise(const gbx_task_slots *slots, unsigned needs,
                          char out_text[ADVICE_BYTES]) {
    const gbx_run_info *run = gbx_reader_run(slots->reader);
    bool needs_full = needs & NEEDS_FULL;
    bool needs_args = needs & NEEDS_ARGS && !run->has_args;
    snprintf(out_text, ADVICE_BYTES, "%srun again%s%s%s%s%s%s",
             needs & NEEDS_DESCRIPTION
                 ? "describe it in the orchestration (gbx_set_tensor_info_to_task) and "
                 : "",
             needs_full || needs_args ? " with" : "", needs_full ? " --dump-tensor=full" : "",
             needs_args ? " --dump-args" : "",
             needs_args && !needs_full ? ", which records addresses at dispatch" : "",
             needs_full && run->filter_count > 0 ? ", without filters" : "",
             needs & NEEDS_LENGTH ? ", without --dump-max-tensor" : "");
    return out_text;
}

/* Fails with what is missing, and what to do. */
static gbx_status lack(const gbx_task_slots *slots, gbx_replay_lack what, const char *sentence,
                       const char *advice) {
    slots->task->lack = what;
    return gbx_fail(GBX_NOT_FOUND, "%s; %s", sentence, advice);
}

/*
 * If some arguments may be unrecorded, dispatches or signatures must name them. A task that faulted
 * has all its arguments recorded, unless the run ended meanwhile.
 */
static gbx_status check_list(const gbx_task_slots *slots) {
    char advice[ADVICE_BYTES];
    bool is_cut = is_cut_short(slots) && !(slots->has_in_flight && gbx_reader_end(slots->reader));
    if (slots->has_dispatches || slots->has_signature)
        return NULL;
    if (is_cut)
        return lack(slots, GBX_REPLAY_LACKS_OUTPUTS,
                    "the run ended before the outputs of this task were recorded, so their number "
                    "and addresses are unknown",
                    advise(slots, NEEDS_ARGS, advice));
    if (!is_selective(slots) && !slots->has_unnamed_losses)
        return NULL;
    return lack(slots, GBX_REPLAY_LACKS_SIGNATURE, "its arguments are unknown",
                "run again with --dump-tensor=full, or declare the signature of its kernels");
}

gbx_status gbx_task_slots_check(const gbx_task_slots *slots) {
    if (slots->is_skipped)
        return lack(slots, GBX_REPLAY_LACKS_DESCRIPTION,
                    "its tensors are undescribed, so the dump skipped it",
                    "describe them in the orchestration (gbx_set_tensor_info_to_task)");
    if (!slots->has_task)
        return lack(slots, GBX_REPLAY_LACKS_RECORD,
                    "the record of the task was lost, so its kernels are unknown",
                    "run again with --dump-tensor=full");
    if (!(gbx_reader_get_origin(slots->reader)->known & GBX_KNOWN_SUBTASKS))
        return lack(slots, GBX_REPLAY_LACKS_SUBTASKS,
                    "the dump does not record which cores and how many blocks ran it (subtasks, "
                    "block_num)",
                    "record it with glassbox run");
    GBX_TRY(check_list(slots));
    list missing = {.used = 0};
    char advice[ADVICE_BYTES];
    unsigned needs = NEEDS_NOTHING;
    for (uint32_t i = 0; i < slots->count; ++i) {
        char reason[REASON_BYTES];
        if (is_there(&slots->slots[i]))
            continue;
        needs |= explain(slots, &slots->slots[i], reason);
        add(&missing, &slots->task->arguments[i], reason);
    }
    if (missing.count == 0)
        return NULL;
    return lack(slots, GBX_REPLAY_LACKS_ARGUMENTS, missing.text, advise(slots, needs, advice));
}

gbx_status gbx_replay_task_explain(const gbx_replay_task *task, gbx_status status, bool has_title) {
    char title[GBX_REPLAY_TITLE_BYTES];
    if (task->lack == GBX_REPLAY_LACKS_ARGUMENTS || task->lack == GBX_REPLAY_LACKS_OUTPUTS)
        status = gbx_status_annotate(status, "the dump lacks data that the task needs");
    if (task->lack == GBX_REPLAY_LACKS_NOTHING || !has_title)
        return status;
    gbx_replay_task_title(task, title);
    gbx_text_make_plain(title);
    return gbx_status_annotate(status, "replaying %s", title);
}
