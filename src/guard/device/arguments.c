#include "guard/device/guard.h"

#include <string.h>

#include "tensor/view.h"

/* Counts the bytes that differ; false when there are none. */
static bool find_changes(const unsigned char *right, const unsigned char *now, uint64_t bytes,
                         gbx_run_finding *finding) {
    uint64_t last = 0;
    finding->changed = 0;
    for (uint64_t i = 0; i < bytes; ++i) {
        if (right[i] == now[i])
            continue;
        if (finding->changed++ == 0)
            finding->first = (int64_t)i;
        last = i;
    }
    if (!finding->changed)
        return false;
    finding->span = last - (uint64_t)finding->first + 1;
    return true;
}

/* Tasks share descriptions: another thread may compare them, or restore the same bytes. */
static __attribute__((no_sanitize("thread"))) void
restore(volatile unsigned char *to, const unsigned char *from, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; ++i)
        to[i] = from[i];
}

/* Reports that bytes of a task's arguments changed, and restores them: the kernels that read them
 * get what the orchestration gave them. */
static void report(const gbx_arguments_check *check, const gbx_sched_task *task, bool has_run,
                   const void *right, void *now, uint64_t bytes) {
    gbx_run_finding finding = {.kind = GBX_RUN_FINDING_ARGUMENTS,
                               .place = GBX_PLACE_ARGUMENTS,
                               .finder = has_run ? task->id : GBX_NO_TASK,
                               .address = (uint64_t)(uintptr_t)now,
                               .bytes = bytes,
                               .owner_task = task->id,
                               .owner_func = task->func_ids[task->first_subtask]};
    if (!find_changes(right, now, bytes, &finding))
        return; /* another thread has restored what both tasks share */
    restore(now, right, bytes);
    check->findings->report(check->findings->context, &finding, task->right_at);
}

/* Descriptions that words lead to, outside of the task's own block: host_build_graph has them. */
static void check_described(const gbx_arguments_check *check, const gbx_sched_task *task,
                            bool has_run, uint64_t block, uint64_t bytes) {
    const gbx_task_arguments *kept = task->arguments;
    const gbx_tensor *tensor = gbx_task_arguments_tensors(kept);
    for (uint32_t i = 0; i < task->word_count; ++i) {
        if (!(kept->kinds[i] & GBX_WORD_TENSOR))
            continue;
        const gbx_tensor *right = tensor++;
        uint64_t word = kept->words[i];
        if (kept->misdescribed_words >> i & 1 || word - block < bytes)
            continue;
        gbx_tensor *now = (gbx_tensor *)(uintptr_t)word;
        if (gbx_tensor_is_alike(now, right))
            continue;
        gbx_tensor restored = *right;
        restored.buffer_bytes = now->buffer_bytes;
        memcpy(restored.reserved, now->reserved, sizeof restored.reserved);
        report(check, task, has_run, &restored, now, sizeof restored);
    }
}

void gbx_arguments_check_task(const gbx_arguments_check *check, gbx_sched_task *task,
                              bool has_run) {
    const gbx_task_arguments *kept = task->arguments;
    uint64_t moment = check->findings->moment(check->findings->context);
    uint64_t bytes = gbx_task_arguments_bytes(kept->word_count, kept->tensor_count);
    uint64_t block = check->shown + ((uint64_t)(uintptr_t)kept - (uint64_t)(uintptr_t)check->kept);
    void *now = (void *)(uintptr_t)block;
    if (memcmp(kept, now, bytes) != 0)
        report(check, task, has_run, kept, now, bytes);
    check_described(check, task, has_run, block, bytes);
    task->right_at = moment;
}
