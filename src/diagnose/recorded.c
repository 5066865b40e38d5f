/* How many tasks the dump has anything of: what it has nothing of was not asked. */
#include <stdlib.h>

#include "base/memory.h"
#include "diagnose/internal.h"

/* Of one task. */
typedef struct recorded {
    bool has_tensor;
    bool has_value; /* of an output, or statistics of it */
} recorded;

static bool is_known(const gbx_entry *entry) {
    return gbx_entry_has_values(entry) || (entry->tensor && gbx_record_statistics(entry->tensor));
}

static gbx_status look_at_entries(const gbx_inquiry *q, recorded *tasks) {
    gbx_entries *entries = q->request->entries;
    for (uint64_t i = 0; i < gbx_entries_count(entries); ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        uint64_t place = gbx_task_graph_place(q->graph, entry.head->task);
        if (!entry.tensor || place == UINT64_MAX || (entry.head->flags & GBX_FLAG_IN_FLIGHT))
            continue;
        tasks[place].has_tensor = true;
        tasks[place].has_value |= entry.head->stage == GBX_STAGE_AFTER && is_known(&entry);
    }
    return NULL;
}

gbx_status gbx_inquiry_count_recorded(gbx_inquiry *q) {
    gbx_diagnosis *d = q->d;
    d->with_tensors = d->with_values = d->tasks;
    if (d->has_audit && gbx_audit_find_lack(&d->audit.counts) == GBX_AUDIT_LACKS_NOTHING)
        return NULL; /* a task without tensors never had any */
    recorded *tasks = calloc(d->tasks + 1, sizeof *tasks);
    if (!tasks)
        return gbx_fail_memory("diagnosing");
    gbx_status status = look_at_entries(q, tasks);
    d->with_tensors = d->with_values = 0;
    for (uint64_t i = 0; i < d->tasks; ++i) {
        d->with_tensors += tasks[i].has_tensor;
        d->with_values += tasks[i].has_value;
    }
    free(tasks);
    return status;
}
