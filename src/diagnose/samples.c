/* Which tasks sanitizers are asked about: of each kernel, tasks whose arguments have other shapes.
 */
#include <string.h>

#include "base/hash.h"
#include "diagnose/internal.h"

/* What decides which way a kernel goes: kernels, blocks, and arguments without their places. */
typedef struct likeness {
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    gbx_hash128 hash;
} likeness;

/* Of a scalar, whether it is 0, 1 or something else: flags choose another way. */
static void add_argument(gbx_hash_state *hash, const gbx_entry *entry) {
    uint64_t words[4 + 2 * GBX_MAX_DIMS] = {entry->head->arg_index, entry->head->stage,
                                            entry->dtype};
    gbx_tensor view;
    if (entry->scalar)
        words[3] = entry->scalar->bits > 1 ? 2 : entry->scalar->bits;
    if (entry->tensor) {
        gbx_record_view(entry->tensor, &view);
        words[3] = view.ndims;
        for (uint32_t d = 0; d < view.ndims; ++d) {
            words[4 + 2 * d] = (uint64_t)view.shape[d];
            words[5 + 2 * d] = (uint64_t)view.strides[d];
        }
    }
    gbx_hash_update(hash, words, sizeof words);
}

static gbx_status look_at(const gbx_inquiry *q, const gbx_record_task *record, likeness *out) {
    gbx_entries *entries = q->request->entries;
    gbx_hash_state hash;
    memcpy(out->func_ids, record->func_ids, sizeof out->func_ids);
    gbx_hash_begin(&hash);
    gbx_hash_update(&hash, record->func_ids, sizeof record->func_ids);
    gbx_hash_update(&hash, &record->block_num, sizeof record->block_num);
    for (uint64_t i = gbx_entries_find(entries, record->head.task); i < gbx_entries_count(entries);
         ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (entry.head->task != record->head.task)
            break;
        add_argument(&hash, &entry);
    }
    out->hash = gbx_hash_end(&hash);
    return NULL;
}

/* Whether a task is like none so far, and its kernel has not had its share. */
static bool is_wanted(const likeness *known, size_t count, const likeness *one) {
    size_t of_kernel = 0;
    for (size_t i = 0; i < count; ++i) {
        if (memcmp(known[i].func_ids, one->func_ids, sizeof one->func_ids) != 0)
            continue;
        if (known[i].hash.low == one->hash.low && known[i].hash.high == one->hash.high)
            return false;
        ++of_kernel;
    }
    return of_kernel < GBX_SAMPLES_OF_KERNEL;
}

gbx_status gbx_inquiry_sample(const gbx_inquiry *q, gbx_samples *out_samples) {
    likeness known[GBX_SAMPLES_MAX] = {0};
    *out_samples = (gbx_samples){0};
    for (uint64_t i = 0; i < gbx_task_graph_count(q->graph); ++i) {
        const gbx_graph_task *task = gbx_task_graph_at(q->graph, i);
        gbx_record_task record;
        likeness one;
        bool is_chosen, is_found;
        GBX_TRY(gbx_inquiry_chooses(q, task->task, &is_chosen));
        GBX_TRY(gbx_reader_find_task(q->reader, task->task, &record, &is_found));
        if (!is_chosen || !is_found || task->end_ns == UINT64_MAX)
            continue;
        GBX_TRY(look_at(q, &record, &one));
        if (!is_wanted(known, out_samples->count, &one))
            continue;
        if (out_samples->count == GBX_SAMPLES_MAX) {
            out_samples->has_more = true;
            return NULL;
        }
        known[out_samples->count] = one;
        memcpy(out_samples->func_ids[out_samples->count], one.func_ids, sizeof one.func_ids);
        out_samples->tasks[out_samples->count++] = task->task;
    }
    return NULL;
}
