#include "store/reader_totals.h"

#include <glassbox/orchestration.h>

static void add(uint64_t *sum, uint64_t value) {
    if (__builtin_add_overflow(*sum, value, sum))
        *sum = UINT64_MAX;
}

static void count_argument(gbx_reader_totals *totals, const gbx_record *record) {
    bool is_tensor = record->type == GBX_RECORD_TENSOR;
    unsigned flags = is_tensor ? record->flags : record->flags & GBX_FLAG_TRUNCATED;
    if (flags & GBX_FLAG_HAS_PAYLOAD) {
        const gbx_record_tensor *tensor = (const gbx_record_tensor *)record;
        uint64_t end = tensor->bin_offset + tensor->bin_size; /* has been checked to fit */
        add(&totals->payload_bytes, tensor->bin_size);
        add(&totals->stored_bytes, flags & GBX_FLAG_DUPLICATE ? 0 : tensor->bin_size);
        totals->payload_end = end > totals->payload_end ? end : totals->payload_end;
    }
    if (record->flags & GBX_FLAG_IN_FLIGHT) {
        totals->in_flight++;
        return;
    }
    totals->records++;
    totals->tensors += is_tensor;
    totals->before_dispatch += record->stage == GBX_STAGE_BEFORE;
    totals->after_completion += record->stage == GBX_STAGE_AFTER;
    totals->inputs += record->role == GBX_ROLE_INPUT;
    totals->outputs += record->role == GBX_ROLE_OUTPUT;
    totals->inouts += record->role == GBX_ROLE_INOUT;
    totals->truncated += (flags & GBX_FLAG_TRUNCATED) != 0;
    totals->deduplicated += (flags & GBX_FLAG_DUPLICATE) != 0;
}

void gbx_reader_totals_count(gbx_reader_totals *totals, const gbx_record *record) {
    switch (record->type) {
    case GBX_RECORD_SCALAR:
    case GBX_RECORD_TENSOR:
        count_argument(totals, record);
        break;
    case GBX_RECORD_TASK:
        totals->tasks++;
        break;
    case GBX_RECORD_DISPATCH:
        totals->dispatches++;
        totals->dispatch_args += ((const gbx_record_dispatch *)record)->slot_count;
        break;
    case GBX_RECORD_EXECUTION:
        totals->executions++;
        break;
    case GBX_RECORD_SAMPLE:
        totals->samples++;
        break;
    case GBX_RECORD_RUN_ARG:
        totals->run_args++;
        break;
    case GBX_RECORD_LOSS:
        totals->losses++;
        add(&totals->dropped, ((const gbx_record_loss *)record)->count);
        break;
    case GBX_RECORD_SKIPPED:
        totals->skipped++;
        break;
    default:
        break;
    }
}
