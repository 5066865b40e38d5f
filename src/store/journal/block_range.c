#include "store/journal/block_range.h"

#include <xxhash.h>

#include "store/journal/record.h"

uint64_t gbx_block_range_checksum(const gbx_record_range *range) {
    return XXH3_64bits(range, offsetof(gbx_record_range, check));
}

void gbx_block_range_make(const void *records, uint64_t bytes, gbx_record_range *out_range) {
    const uint64_t *words = records;
    uint64_t first = GBX_RECORD_TASK_END - 1, last = 0, types = 0;
    for (uint64_t at = 0; at < bytes / 8;) {
        const gbx_record *record = (const gbx_record *)(const void *)(words + at);
        uint64_t type = GBX_TYPE_BIT(record->type);
        types |= type;
        if (type & GBX_TASK_TYPES) {
            first = record->task < first ? record->task : first;
            last = record->task > last ? record->task : last;
        }
        at += record->words;
    }
    *out_range = (gbx_record_range){.head = {.type = GBX_RECORD_RANGE,
                                             .stage = GBX_STAGE_NONE,
                                             .arg_index = GBX_ARG_NONE,
                                             .words = sizeof *out_range / 8,
                                             .task = first},
                                    .last_task = last,
                                    .types = types};
    out_range->check = gbx_block_range_checksum(out_range);
}

bool gbx_block_range_is_intact(const gbx_record_range *range) {
    return range->head.type == GBX_RECORD_RANGE && range->head.words >= sizeof *range / 8 &&
           range->check == gbx_block_range_checksum(range);
}

bool gbx_block_range_may_hold(const gbx_record_range *range, gbx_task_range tasks,
                              uint64_t ignored) {
    if (range->types & ~(GBX_TASK_TYPES | ignored))
        return true;
    return range->head.task <= tasks.last && range->last_task >= tasks.first &&
           range->head.task <= range->last_task;
}
