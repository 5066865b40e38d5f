#include "store/journal/record.h"

#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

enum {
    HEAD_WORDS = sizeof(gbx_record) / 8,
    SLOT_WORDS = sizeof(gbx_record_slot) / 8,
    SLOT_TENSOR_WORDS = 2, /* address and start_offset */
    STATS_WORDS = sizeof(gbx_record_stats) / 8,
    FIRST_DTYPE = GBX_RECORD_FIRST_DTYPE,
    LAST_DTYPE = GBX_DTYPE_COUNT - 1
};

const uint8_t gbx_record_fixed_words[256] = {
    [GBX_RECORD_RUN] = sizeof(gbx_record_run) / 8,
    [GBX_RECORD_RUN_ARG] = sizeof(gbx_record_run_arg) / 8,
    [GBX_RECORD_TASK] = sizeof(gbx_record_task) / 8,
    [GBX_RECORD_EDGES] = HEAD_WORDS,
    [GBX_RECORD_DONE] = HEAD_WORDS,
    [GBX_RECORD_SCALAR] = sizeof(gbx_record_scalar) / 8,
    [GBX_RECORD_TENSOR] = sizeof(gbx_record_tensor) / 8,
    [GBX_RECORD_DISPATCH] = sizeof(gbx_record_dispatch) / 8,
    [GBX_RECORD_LOSS] = sizeof(gbx_record_loss) / 8,
    [GBX_RECORD_SKIPPED] = sizeof(gbx_record_skipped) / 8,
    [GBX_RECORD_END] = sizeof(gbx_record_end) / 8,
    [GBX_RECORD_EXECUTION] = sizeof(gbx_record_execution) / 8,
    [GBX_RECORD_SAMPLE] = sizeof(gbx_record_sample) / 8,
    [GBX_RECORD_FINDING] = sizeof(gbx_record_finding) / 8,
    [GBX_RECORD_RESULT] = sizeof(gbx_record_tensor) / 8 + 1,
    [GBX_RECORD_RANGE] = sizeof(gbx_record_range) / 8,
    [GBX_RECORD_OF_DTYPE(FIRST_DTYPE)... GBX_RECORD_OF_DTYPE(LAST_DTYPE)] = HEAD_WORDS,
};
static_assert(LAST_DTYPE < GBX_RECORD_END_DTYPE, "types of records that announce dtypes");

static const char *check_text(const gbx_record *head, uint64_t bytes) {
    uint64_t room = (uint64_t)(head->words - gbx_record_fixed_words[head->type]) * 8;
    return bytes <= room ? NULL : "its text is longer than the record";
}

static bool has_negative(const int64_t *dimensions, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        if (dimensions[i] < 0)
            return true;
    return false;
}

/* The argument of SCALAR and TENSOR. */
static const char *check_argument(const gbx_record *head) {
    if (head->stage > GBX_STAGE_AFTER)
        return "its stage is neither before nor after";
    if (head->role > GBX_ROLE_INOUT)
        return "its role is unknown";
    if (head->arg_index >= GBX_ARG_LOCAL_CONTEXT)
        return "its arg_index is too large";
    return NULL;
}

/* Words of TENSOR, and of what RESULT has in common with it. */
static uint32_t tensor_words(const gbx_record *head) {
    return (uint32_t)(sizeof(gbx_record_tensor) / 8) + 2u * head->ndims +
           (head->flags & GBX_FLAG_HAS_STATS ? STATS_WORDS : 0);
}

/* All but the argument. */
static const char *check_tensor(const gbx_record_tensor *record) {
    const gbx_record *head = &record->head;
    if (!gbx_dtype_is_valid(head->dtype))
        return "its dtype is unknown";
    if (head->ndims > GBX_MAX_DIMS)
        return "its shape has more than 8 dimensions";
    if (head->words < tensor_words(head))
        return "it is too short for its shape, strides and statistics";
    if (has_negative(gbx_record_shape(record), head->ndims))
        return "a dimension of its shape is negative";
    if (record->bin_size > UINT64_MAX - record->bin_offset)
        return "its payload ends beyond 64 bits";
    return NULL;
}

static const char *check_pieces(const gbx_record_tensor *record) {
    uint64_t count;
    uint64_t end = 0;
    const gbx_record_piece *pieces = gbx_record_pieces(record, &count);
    uint64_t left = record->head.words - tensor_words(&record->head) - 1;
    if (count > left / (sizeof *pieces / 8))
        return "it is too short for its pieces";
    for (uint64_t i = 0; i < count; ++i) {
        if (pieces[i].offset < end || pieces[i].bytes == 0)
            return "its pieces are not ascending and disjoint";
        if (pieces[i].bytes > UINT64_MAX - pieces[i].offset ||
            pieces[i].bytes > UINT64_MAX - pieces[i].address)
            return "a piece ends beyond 64 bits";
        end = pieces[i].offset + pieces[i].bytes;
    }
    return NULL;
}

static const char *check_result(const gbx_record_tensor *record) {
    const char *wrong = check_tensor(record);
    if (wrong)
        return wrong;
    if (record->head.words < tensor_words(&record->head) + 1)
        return "it is too short for its pieces";
    if (record->head.role != GBX_ROLE_OUTPUT && record->head.role != GBX_ROLE_INOUT)
        return "its role is neither output nor inout";
    if (record->head.arg_index >= GBX_MAX_RUN_TENSORS)
        return "its arg_index is too large";
    return check_pieces(record);
}

static const char *check_run_arg(const gbx_record_run_arg *record) {
    const gbx_record *head = &record->head;
    if (record->is_tensor > 1)
        return "it is neither tensor nor scalar";
    if (record->is_tensor ? !gbx_dtype_is_valid(head->dtype) : head->dtype >= GBX_DTYPE_COUNT)
        return "its dtype is unknown";
    if (!record->is_tensor)
        return NULL;
    if (head->ndims > GBX_MAX_DIMS)
        return "its shape has more than 8 dimensions";
    if (head->words < gbx_record_fixed_words[GBX_RECORD_RUN_ARG] + head->ndims)
        return "it is too short for its shape";
    if (has_negative(gbx_record_run_arg_shape(record), head->ndims))
        return "a dimension of its shape is negative";
    return NULL;
}

/* Words of a slot, including the geometry of a tensor. */
static uint32_t slot_words(const gbx_record_slot *slot) {
    return slot->is_tensor ? SLOT_WORDS + SLOT_TENSOR_WORDS + 2u * slot->ndims : SLOT_WORDS;
}

static const char *check_slot(const gbx_record_slot *slot, uint32_t words_left) {
    if (slot->is_tensor > 1)
        return "a slot is neither tensor nor scalar";
    if (slot->arg_index >= GBX_ARG_LOCAL_CONTEXT)
        return "the arg_index of a slot is too large";
    if (slot->role > GBX_ROLE_INOUT)
        return "the role of a slot is unknown";
    if (slot->is_tensor ? !gbx_dtype_is_valid(slot->dtype) : slot->dtype >= GBX_DTYPE_COUNT)
        return "the dtype of a slot is unknown";
    if (slot->is_tensor && slot->ndims > GBX_MAX_DIMS)
        return "the shape of a slot has more than 8 dimensions";
    return slot_words(slot) <= words_left ? NULL : "it is too short for its slots";
}

static const char *check_dispatch(const gbx_record_dispatch *record) {
    if (record->subtask >= GBX_SUBTASK_COUNT)
        return "its subtask is unknown";
    if (record->block_idx >= GBX_RECORD_BLOCK_END)
        return "its block_idx is too large";
    if (record->slot_count > GBX_ARG_LOCAL_CONTEXT)
        return "it has more slots than a task has arguments";
    const uint64_t *at = (const uint64_t *)(const void *)(record + 1);
    uint32_t left = record->head.words - gbx_record_fixed_words[GBX_RECORD_DISPATCH];
    for (uint32_t i = 0; i < record->slot_count; ++i) {
        if (left < SLOT_WORDS)
            return "it is too short for its slots";
        const gbx_record_slot *slot = (const gbx_record_slot *)(const void *)at;
        const char *wrong = check_slot(slot, left);
        if (wrong)
            return wrong;
        at += slot_words(slot);
        left -= slot_words(slot);
    }
    return NULL;
}

static const char *check_loss(const gbx_record_loss *record) {
    if (record->cause >= GBX_LOSS_CAUSE_COUNT)
        return "its cause is unknown";
    bool has_stage = record->head.stage <= GBX_STAGE_AFTER;
    return has_stage || record->head.stage == GBX_STAGE_NONE ? NULL : "its stage is unknown";
}

static const char *check_execution(const gbx_record_execution *record) {
    if (record->subtask >= GBX_SUBTASK_COUNT)
        return "its subtask is unknown";
    if (record->block_idx >= GBX_RECORD_BLOCK_END)
        return "its block_idx is too large";
    if (record->core_id >= GBX_RECORD_CORE_END)
        return "its core_id is too large";
    return record->end_ns >= record->head.time_ns ? NULL : "it ends before it starts";
}

/* JSON must keep its numbers exactly. */
static bool is_number(uint64_t number) {
    return number >> 53 == 0;
}

/* A kind or place of a newer version is kept as a number. */
static const char *check_finding(const gbx_record_finding *record) {
    const gbx_run_finding *f = &record->finding;
    uint64_t before = f->first < 0 ? -(uint64_t)f->first : (uint64_t)f->first;
    if (f->candidate_count > GBX_FINDING_CANDIDATES || f->candidate_total < f->candidate_count)
        return "it has more candidates than it can";
    if (!is_number(f->bytes) || !is_number(before) || !is_number(f->span) ||
        !is_number(f->changed) || !is_number(f->candidate_total) || !is_number(f->run_total))
        return "a number of it is too large";
    for (uint32_t i = 0; i < f->candidate_count; ++i)
        if (f->candidates[i].task >= GBX_RECORD_TASK_END)
            return "the task number of a candidate is too large";
    bool has_finder = f->finder != GBX_FINDING_NO_TASK;
    bool has_owner = f->owner_task != GBX_FINDING_NO_TASK;
    return (has_finder && f->finder >= GBX_RECORD_TASK_END) ||
                   (has_owner && f->owner_task >= GBX_RECORD_TASK_END)
               ? "a task number of it is too large"
               : NULL;
}

const char *gbx_record_check(const void *record, uint64_t words_left) {
    if (words_left < HEAD_WORDS)
        return "its head is cut off";
    const gbx_record *head = record;
    if (head->type == 0)
        return "its type is 0";
    if (head->words < HEAD_WORDS || head->words < gbx_record_fixed_words[head->type])
        return "it is shorter than a record of its type";
    if (head->words > words_left)
        return "it is longer than the rest of its block";
    if (!gbx_record_is_known(head->type))
        return NULL;
    if (head->task >= GBX_RECORD_TASK_END)
        return "its task number is too large";
    switch (head->type) {
    case GBX_RECORD_SCALAR:
        return head->dtype < GBX_DTYPE_COUNT ? check_argument(head) : "its dtype is unknown";
    case GBX_RECORD_TENSOR: {
        const char *wrong = check_tensor(record);
        return wrong ? wrong : check_argument(head);
    }
    case GBX_RECORD_RESULT:
        return check_result(record);
    case GBX_RECORD_DISPATCH:
        return check_dispatch(record);
    case GBX_RECORD_RUN_ARG:
        return check_run_arg(record);
    case GBX_RECORD_EDGES:
        return head->tail_words <= head->words - HEAD_WORDS ? NULL
                                                            : "its tail is longer than the record";
    case GBX_RECORD_LOSS:
        return check_loss(record);
    case GBX_RECORD_SKIPPED:
        return ((const gbx_record_skipped *)record)->reason <= GBX_SKIP_MISMATCH
                   ? NULL
                   : "its reason is unknown";
    case GBX_RECORD_EXECUTION:
        return check_execution(record);
    case GBX_RECORD_FINDING:
        return check_finding(record);
    case GBX_RECORD_SAMPLE: {
        const gbx_record_sample *sample = record;
        return sample->used_bytes <= sample->arena_bytes ? NULL
                                                         : "it uses more than its arena holds";
    }
    case GBX_RECORD_RUN:
        return check_text(head, ((const gbx_record_run *)record)->bytes);
    case GBX_RECORD_END:
        return check_text(head, ((const gbx_record_end *)record)->bytes);
    default:
        return NULL;
    }
}

void gbx_record_view(const gbx_record_tensor *record, gbx_tensor *out_view) {
    memset(out_view, 0, sizeof *out_view);
    out_view->data = record->buffer_addr;
    out_view->dtype = record->head.dtype;
    out_view->ndims = record->head.ndims;
    out_view->start_offset = record->start_offset;
    memcpy(out_view->shape, gbx_record_shape(record), record->head.ndims * sizeof(int64_t));
    memcpy(out_view->strides, gbx_record_strides(record), record->head.ndims * sizeof(int64_t));
}

const void *gbx_record_next_slot(const void *at, gbx_slot_view *out_view) {
    const gbx_record_slot *slot = at;
    const uint64_t *words = at;
    gbx_slot_view view = {.slot = slot};
    if (slot->is_tensor) {
        view.data = words[SLOT_WORDS];
        view.start_offset = (int64_t)words[SLOT_WORDS + 1];
        view.shape = (const int64_t *)(words + SLOT_WORDS + SLOT_TENSOR_WORDS);
        view.strides = view.shape + slot->ndims;
    }
    *out_view = view;
    return words + slot_words(slot);
}

/* Words of a checked record that this version knows. */
static uint64_t known_words(const gbx_record *record) {
    uint64_t fixed = gbx_record_fixed_words[record->type];
    switch (record->type) {
    case GBX_RECORD_RUN:
        return record->words;
    case GBX_RECORD_RUN_ARG:
        return ((const gbx_record_run_arg *)record)->is_tensor ? fixed + record->ndims : fixed;
    case GBX_RECORD_EDGES:
        return record->words - record->tail_words;
    case GBX_RECORD_TENSOR:
        return tensor_words(record);
    case GBX_RECORD_RESULT: {
        uint64_t count;
        gbx_record_pieces((const gbx_record_tensor *)record, &count);
        return tensor_words(record) + 1 + count * (sizeof(gbx_record_piece) / 8);
    }
    case GBX_RECORD_DISPATCH: {
        const gbx_record_dispatch *dispatch = (const gbx_record_dispatch *)record;
        const void *at = dispatch + 1;
        gbx_slot_view slot;
        for (uint32_t i = 0; i < dispatch->slot_count; ++i)
            at = gbx_record_next_slot(at, &slot);
        return (uint64_t)((const uint64_t *)at - (const uint64_t *)(const void *)record);
    }
    case GBX_RECORD_END: {
        uint64_t bytes = ((const gbx_record_end *)record)->bytes;
        return fixed + bytes / 8 + (bytes % 8 != 0);
    }
    default:
        return fixed;
    }
}

const uint64_t *gbx_record_tail(const gbx_record *record, uint64_t *out_words) {
    uint64_t known = known_words(record);
    *out_words = record->words - known;
    return (const uint64_t *)(const void *)record + known;
}

static bool copy_tail(const gbx_record *record, void *to, size_t bytes) {
    uint64_t words;
    const uint64_t *tail = gbx_record_tail(record, &words);
    if (words < bytes / 8)
        return false;
    memcpy(to, tail, bytes);
    return true;
}

bool gbx_record_get_announced(const gbx_record_task *record, gbx_record_announced *out_announced) {
    return copy_tail(&record->head, out_announced, sizeof *out_announced);
}

bool gbx_record_get_lost_arguments(const gbx_record_loss *record, uint64_t *out_count) {
    return copy_tail(&record->head, out_count, sizeof *out_count);
}

uint32_t gbx_record_lost_result(const gbx_record_loss *record) {
    gbx_record_lost lost;
    bool is_there = copy_tail(&record->head, &lost, sizeof lost);
    return is_there && lost.result && lost.result <= GBX_MAX_RUN_TENSORS ? (uint32_t)lost.result - 1
                                                                         : GBX_ARG_NONE;
}
