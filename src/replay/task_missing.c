/* Why a task of a dump cannot be called again. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/plain_text.h"
#include "replay/task_slots.h"
#include "store/reader.h"

enum { LIST_BYTES = 16384, REASON_BYTES = 128, ROLE_OUTPUT = 1 };

static const char *const loss_causes[GBX_LOSS_CAUSE_COUNT] = {
    "there was no room for it in time", "the disk failed", "the device told nonsense of it",
    "the chip ended before it was handed over", "another tool says so"};

/* Of what was not recorded at all. */
static void explain_absence(const gbx_task_slots *slots, const gbx_task_slot *slot,
                            char out_text[REASON_BYTES]) {
    const gbx_run_info *run = gbx_reader_run(slots->reader);
    if (slot->is_lost)
        snprintf(out_text, REASON_BYTES, "lost: %s",
                 loss_causes[slot->loss_cause < GBX_LOSS_CAUSE_COUNT ? slot->loss_cause : 0]);
    else if (slot->is_mismatched)
        snprintf(out_text, REASON_BYTES,
                 "skipped: what was told of it is not what the kernel gets");
    else if (run->filter_count > 0)
        snprintf(out_text, REASON_BYTES, "left out by the filters of the run");
    else if (!run->dump_level)
        snprintf(out_text, REASON_BYTES, "recorded without --dump-tensor");
    else if (strcmp(run->dump_level, "partial") == 0)
        snprintf(out_text, REASON_BYTES, "not marked, at level partial");
    else
        snprintf(out_text, REASON_BYTES, "not recorded");
}

/* Of a tensor with a record, but not with all its bytes. */
static void explain_payload(const gbx_task_slots *slots, const gbx_task_slot *slot,
                            char out_text[REASON_BYTES]) {
    const gbx_run_info *run = gbx_reader_run(slots->reader);
    uint64_t bytes = gbx_tensor_payload_bytes(&slot->view);
    if (slot->before_flags & GBX_FLAG_OVERWRITTEN)
        snprintf(out_text, REASON_BYTES, "overwritten before it was taken");
    else if (slot->before_flags & GBX_FLAG_TRUNCATED)
        snprintf(out_text, REASON_BYTES,
                 "truncated to %" PRIu64 " of %" PRIu64 " bytes (--dump-max-tensor)",
                 slot->before_bytes, bytes);
    else if (slot->before_flags & GBX_FLAG_HAS_PAYLOAD)
        snprintf(out_text, REASON_BYTES, "has %" PRIu64 " bytes of payload in place of %" PRIu64,
                 slot->before_bytes, bytes);
    else
        snprintf(out_text, REASON_BYTES, "without payload at level %s%s",
                 run->dump_level ? run->dump_level : "none",
                 run->filter_count > 0 ? " with filters" : "");
}

/* False where nothing is missing: what is read has its bytes, and a tensor its shape. */
static bool explain(const gbx_task_slots *slots, const gbx_task_slot *slot,
                    char out_text[REASON_BYTES]) {
    bool is_read = slot->role != ROLE_OUTPUT;
    bool is_complete = !is_read || slot->is_before_complete;
    if (slot->is_known && !slot->is_tensor && slot->has_bits)
        return false;
    if (slot->is_known && slot->is_tensor && slot->has_view && is_complete)
        return false;
    /* An empty tensor needs no bytes. */
    if (slot->is_tensor && slot->has_view && gbx_tensor_payload_bytes(&slot->view) == 0)
        return false;
    if (slot->is_tensor && slot->has_before)
        explain_payload(slots, slot, out_text);
    else
        explain_absence(slots, slot, out_text);
    return true;
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

static gbx_status check_arguments(const gbx_task_slots *slots, const char *title) {
    list missing = {.used = 0};
    for (uint32_t i = 0; i < slots->count; ++i) {
        char reason[REASON_BYTES];
        if (explain(slots, &slots->slots[i], reason))
            add(&missing, &slots->task->arguments[i], reason);
    }
    if (missing.count == 0)
        return NULL;
    return gbx_fail(GBX_NOT_FOUND,
                    "replaying %s: not all that it needs is in the dump: %s; run again with "
                    "--dump-tensor=full",
                    title, missing.text);
}

/* Where some arguments may not have been recorded, they have to be known from elsewhere. */
static bool is_list_open(const gbx_task_slots *slots) {
    const gbx_run_info *run = gbx_reader_run(slots->reader);
    bool is_partial = run->filter_count > 0 || !run->dump_level || slots->has_unnamed_losses ||
                      strcmp(run->dump_level, "partial") == 0;
    return is_partial && !slots->has_dispatches && !slots->has_signature;
}

gbx_status gbx_task_slots_check(const gbx_task_slots *slots) {
    char title[GBX_REPLAY_TITLE_BYTES];
    gbx_replay_task_title(slots->task, title);
    gbx_text_make_plain(title);
    const gbx_reader_origin *origin = gbx_reader_get_origin(slots->reader);
    if (slots->is_skipped)
        return gbx_fail(
            GBX_NOT_FOUND,
            "replaying task %" PRIu64
            ": nobody told which words of the task are tensors, so the dump skipped it; "
            "tell it in the orchestration (gbx_set_tensor_info_to_task)",
            slots->task->task);
    if (!slots->has_task)
        return gbx_fail(GBX_NOT_FOUND,
                        "replaying task %" PRIu64
                        ": what the dump tells of it was lost, so its kernels are not known; run "
                        "again with --dump-tensor=full",
                        slots->task->task);
    if (!(origin->told & GBX_TOLD_SUBTASKS))
        return gbx_fail(GBX_NOT_FOUND,
                        "replaying %s: the dump does not tell which cores and how many blocks ran "
                        "it (subtasks, block_num)",
                        title);
    if (is_list_open(slots))
        return gbx_fail(GBX_NOT_FOUND,
                        "replaying %s: nothing tells which arguments it has; run again with "
                        "--dump-tensor=full, or declare the signature of its kernels",
                        title);
    return check_arguments(slots, title);
}
