#include "dump_walk.h"

#include <string.h>

#include "base/checked.h"
#include "target.h"

enum { PAYLOAD_BYTES = 4096 };

void fuzz_prepare_dump(void) {
    static bool is_done;
    if (is_done)
        return;
    unsigned char payload[PAYLOAD_BYTES];
    for (size_t i = 0; i < sizeof payload; ++i)
        payload[i] = (unsigned char)(i * 7);
    fuzz_make_directory("tensor_dump");
    fuzz_write_file("tensor_dump/tensor_dump.bin", payload, sizeof payload);
    fuzz_write_file("tensor_dump/args.bin", payload, sizeof payload);
    is_done = true;
}

/* Records of each type that gbx_reader_next gave. */
typedef struct seen {
    uint64_t records;
    uint64_t by_type[256];
} seen;

/* --- one record --- */

static void check_record(const gbx_record *record) {
    FUZZ_CHECK((uintptr_t)record % 8 == 0);
    fuzz_touch(record, (size_t)record->words * 8);
    FUZZ_CHECK(gbx_record_is_known(record->type));
    FUZZ_CHECK(gbx_record_check(record, record->words) == NULL);
}

static void check_slots(const gbx_record_dispatch *record) {
    const char *end = (const char *)record + (size_t)record->head.words * 8;
    const void *at = record + 1;
    for (uint32_t i = 0; i < record->slot_count; ++i) {
        gbx_slot_view view;
        at = gbx_record_next_slot(at, &view);
        FUZZ_CHECK((const char *)at <= end);
        fuzz_touch(view.slot, sizeof *view.slot);
        if (view.shape)
            fuzz_touch(view.shape, view.slot->ndims * sizeof(int64_t));
        if (view.strides)
            fuzz_touch(view.strides, view.slot->ndims * sizeof(int64_t));
    }
}

static void check_tensor(const gbx_record_tensor *record) {
    gbx_tensor view;
    gbx_record_view(record, &view);
    FUZZ_CHECK(view.ndims == record->head.ndims && view.dtype == record->head.dtype);
    for (uint32_t i = 0; i < view.ndims; ++i)
        FUZZ_CHECK(view.shape[i] >= 0);
    const gbx_record_stats *stats = gbx_record_statistics(record);
    if (stats)
        fuzz_touch(stats, sizeof *stats);
}

static void check_parts(const gbx_record *record) {
    uint64_t count = 0;
    if (record->type == GBX_RECORD_TENSOR)
        check_tensor((const gbx_record_tensor *)record);
    if (record->type == GBX_RECORD_DISPATCH)
        check_slots((const gbx_record_dispatch *)record);
    if (record->type == GBX_RECORD_EDGES) {
        const uint64_t *edges = gbx_record_edges(record, &count);
        fuzz_touch(edges, count * 8);
    }
    const uint64_t *tail = gbx_record_tail(record, &count);
    FUZZ_CHECK(tail + count == (const uint64_t *)(const void *)record + record->words);
    FUZZ_CHECK(count <= record->words - gbx_record_fixed_words[record->type]);
    fuzz_touch(tail, count * 8);
}

/* --- in the order of the journal --- */

static seen walk_all(gbx_reader *reader) {
    seen all = {0};
    uint64_t last_offset = 0;
    gbx_reader_rewind(reader);
    for (;;) {
        const gbx_record *record = NULL;
        uint64_t offset = 0;
        gbx_status status = gbx_reader_next(reader, &record, &offset);
        FUZZ_CHECK(status == NULL);
        if (!record)
            return all;
        FUZZ_CHECK(offset > last_offset);
        last_offset = offset;
        check_record(record);
        check_parts(record);
        FUZZ_CHECK((record->type == GBX_RECORD_RUN) == (all.records == 0));
        FUZZ_CHECK(all.by_type[GBX_RECORD_END] == 0);
        all.by_type[record->type]++;
        all.records++;
    }
}

static void check_extent(const gbx_reader *reader, const seen *all) {
    const gbx_reader_extent *extent = gbx_reader_get_extent(reader);
    FUZZ_CHECK(extent->record_count == all->records);
    FUZZ_CHECK(extent->good_bytes <= extent->file_bytes);
    FUZZ_CHECK((extent->stop == GBX_STOP_END) == (extent->stop_text[0] == '\0'));
    if (extent->stop != GBX_STOP_END)
        fuzz_check_line(extent->stop_text);
    else
        FUZZ_CHECK(extent->good_bytes == extent->file_bytes);
    FUZZ_CHECK(memchr(extent->stop_text, '\0', sizeof extent->stop_text));
}

static void check_totals(const gbx_reader *reader, const seen *all) {
    const gbx_reader_totals *totals = gbx_reader_get_totals(reader);
    const uint64_t *count = all->by_type;
    uint64_t arguments = count[GBX_RECORD_SCALAR] + count[GBX_RECORD_TENSOR];
    FUZZ_CHECK(totals->records + totals->in_flight == arguments);
    FUZZ_CHECK(totals->tensors <= count[GBX_RECORD_TENSOR]);
    FUZZ_CHECK(totals->before_dispatch + totals->after_completion == totals->records);
    FUZZ_CHECK(totals->inputs + totals->outputs + totals->inouts == totals->records);
    FUZZ_CHECK(totals->stored_bytes <= totals->payload_bytes);
    FUZZ_CHECK(totals->tasks == count[GBX_RECORD_TASK]);
    FUZZ_CHECK(totals->dispatches == count[GBX_RECORD_DISPATCH]);
    FUZZ_CHECK(totals->executions == count[GBX_RECORD_EXECUTION]);
    FUZZ_CHECK(totals->samples == count[GBX_RECORD_SAMPLE]);
    FUZZ_CHECK(totals->run_args == count[GBX_RECORD_RUN_ARG]);
    FUZZ_CHECK(totals->losses == count[GBX_RECORD_LOSS]);
    FUZZ_CHECK(totals->skipped == count[GBX_RECORD_SKIPPED]);
}

static void check_end(const gbx_reader *reader, const seen *all) {
    const gbx_record_end *end = gbx_reader_end(reader);
    FUZZ_CHECK((end != NULL) == (all->by_type[GBX_RECORD_END] == 1));
    fuzz_touch_text(gbx_reader_end_text(reader));
    if (end) {
        check_record(&end->head);
        FUZZ_CHECK(strlen(gbx_reader_end_text(reader)) <= end->bytes);
    }
    const gbx_record_outcome *outcome = gbx_reader_outcome(reader);
    FUZZ_CHECK(!outcome || (end && outcome->ending != 0));
    FUZZ_CHECK(gbx_reader_ending(reader) <= GBX_ENDING_FAILED);
    bool is_good = gbx_reader_get_extent(reader)->stop == GBX_STOP_END;
    bool is_complete = is_good && end && (end->head.flags & GBX_FLAG_COMPLETE);
    FUZZ_CHECK(gbx_reader_is_complete(reader) == is_complete);
}

/* --- in the order of the manifest --- */

static unsigned kind_of(uint8_t type) {
    switch (type) {
    case GBX_RECORD_SCALAR:
    case GBX_RECORD_TENSOR:
        return GBX_INDEX_ARGUMENTS;
    case GBX_RECORD_DISPATCH:
        return GBX_INDEX_DISPATCHES;
    case GBX_RECORD_EXECUTION:
        return GBX_INDEX_EXECUTIONS;
    case GBX_RECORD_EDGES:
    case GBX_RECORD_DONE:
        return GBX_INDEX_GRAPH;
    default:
        FUZZ_CHECK(type == GBX_RECORD_TASK);
        return 0;
    }
}

static void check_task(gbx_reader *reader, uint64_t task, bool has_record) {
    gbx_record_task found;
    bool is_found = false;
    gbx_status status = gbx_reader_find_task(reader, task, &found, &is_found);
    FUZZ_CHECK(status == NULL);
    FUZZ_CHECK(!is_found || (found.head.type == GBX_RECORD_TASK && found.head.task == task));
    FUZZ_CHECK(is_found || !has_record);
    for (uint32_t slot = 0; is_found && slot < GBX_RUN_KERNEL_SLOTS; ++slot)
        fuzz_touch_text(gbx_run_info_slot_name(gbx_reader_run(reader), found.func_ids, slot));
}

static void walk_index(gbx_reader *reader, const seen *all) {
    uint64_t count = gbx_reader_count(reader);
    uint64_t last_task = 0;
    uint64_t first = 0; /* of the task */
    seen indexed = {0};
    for (uint64_t i = 0; i < count; ++i) {
        const gbx_record *record = NULL;
        gbx_status status = gbx_reader_at(reader, i, &record);
        FUZZ_CHECK(status == NULL);
        check_record(record);
        check_parts(record);
        FUZZ_CHECK(gbx_reader_kind(reader, i) == kind_of(record->type));
        FUZZ_CHECK(i == 0 || record->task >= last_task);
        uint64_t task = record->task;
        bool is_task = record->type == GBX_RECORD_TASK;
        first = i > 0 && task == last_task ? first : i;
        last_task = task;
        indexed.by_type[record->type]++;
        FUZZ_CHECK(gbx_reader_find(reader, task) == first);
        check_task(reader, task, is_task);
    }
    for (uint8_t type = GBX_RECORD_TASK; type <= GBX_RECORD_DISPATCH; ++type)
        FUZZ_CHECK(indexed.by_type[type] == all->by_type[type]);
    FUZZ_CHECK(indexed.by_type[GBX_RECORD_EXECUTION] == all->by_type[GBX_RECORD_EXECUTION]);
    FUZZ_CHECK(gbx_reader_find(reader, UINT64_MAX) == count);
    FUZZ_CHECK(count == 0 || gbx_reader_find(reader, last_task + 1) == count);
}

static void walk_list(gbx_reader *reader, gbx_reader_list list, uint8_t type, const seen *all) {
    uint64_t count = gbx_reader_list_count(reader, list);
    uint8_t last_index = 0;
    FUZZ_CHECK(count == all->by_type[type]);
    for (uint64_t i = 0; i < count; ++i) {
        const gbx_record *record = NULL;
        gbx_status status = gbx_reader_list_at(reader, list, i, &record);
        FUZZ_CHECK(status == NULL);
        check_record(record);
        FUZZ_CHECK(record->type == type);
        FUZZ_CHECK(list != GBX_LIST_RUN_ARGS || record->arg_index >= last_index);
        last_index = record->arg_index;
    }
}

/* --- what was run --- */

static void check_kernel(const gbx_run_info *run, const gbx_run_kernel *kernel) {
    FUZZ_CHECK(kernel->name);
    fuzz_touch_text(kernel->core_type);
    FUZZ_CHECK(kernel->signature_count <= GBX_RUN_KERNEL_SLOTS);
    for (size_t i = 0; i < kernel->signature_count; ++i) {
        FUZZ_CHECK(kernel->signature[i]);
        fuzz_touch_text(kernel->signature[i]);
    }
    for (size_t i = 0; i < GBX_RUN_KERNEL_SLOTS; ++i)
        fuzz_touch_text(kernel->slot_names[i]);
    const gbx_run_kernel *found = gbx_run_info_kernel(run, kernel->func_id);
    FUZZ_CHECK(found && found->func_id == kernel->func_id);
}

static void check_run(const gbx_run_info *run) {
    const char *const texts[] = {run->generator, run->run_id,     run->scene,      run->case_name,
                                 run->platform,  run->started_at, run->dump_level, run->runtime};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i)
        fuzz_touch_text(texts[i]);
    for (size_t i = 0; i < run->filter_count; ++i) {
        FUZZ_CHECK(run->filters[i]);
        fuzz_touch_text(run->filters[i]);
    }
    for (size_t i = 0; i < run->kernel_count; ++i)
        check_kernel(run, &run->kernels[i]);
    for (size_t i = 0; i < run->argument_count; ++i) {
        fuzz_touch_text(run->arguments[i].name);
        FUZZ_CHECK(run->arguments[i].role);
    }
}

/* --- payload --- */

static void check_bytes(gbx_reader *reader, uint64_t offset, size_t size) {
    unsigned char bytes[256];
    gbx_status status = gbx_reader_read_payload(reader, offset, bytes, size);
    FUZZ_CHECK(status == NULL);
    for (size_t i = 0; i < size; ++i)
        FUZZ_CHECK(bytes[i] == (unsigned char)((offset + i) * 7));
}

static void check_payload(gbx_reader *reader, const gbx_record_tensor *record) {
    if (record->head.type != GBX_RECORD_TENSOR || !(record->head.flags & GBX_FLAG_HAS_PAYLOAD))
        return;
    size_t size = record->bin_size < 256 ? (size_t)record->bin_size : 256;
    FUZZ_CHECK(gbx_range_is_inside(record->bin_offset, record->bin_size, PAYLOAD_BYTES));
    check_bytes(reader, record->bin_offset, size);
    check_bytes(reader, record->bin_offset + record->bin_size - size, size);
}

static void walk_payload(gbx_reader *reader) {
    gbx_status failure = gbx_reader_open_payload(reader);
    if (failure) {
        fuzz_check_failure(failure);
        return;
    }
    /* A manifest can name any file. */
    const char *name = strrchr(gbx_reader_get_origin(reader)->payload_path, '/');
    bool is_known =
        name && (strcmp(name, "/tensor_dump.bin") == 0 || strcmp(name, "/args.bin") == 0);
    for (uint64_t i = 0; is_known && i < gbx_reader_count(reader); ++i) {
        const gbx_record *record = NULL;
        gbx_status status = gbx_reader_at(reader, i, &record);
        FUZZ_CHECK(status == NULL);
        check_payload(reader, (const gbx_record_tensor *)record);
    }
}

void fuzz_walk_dump(gbx_reader *reader) {
    seen all = walk_all(reader);
    check_extent(reader, &all);
    check_totals(reader, &all);
    check_end(reader, &all);
    check_run(gbx_reader_run(reader));
    walk_index(reader, &all);
    walk_list(reader, GBX_LIST_RUN_ARGS, GBX_RECORD_RUN_ARG, &all);
    walk_list(reader, GBX_LIST_LOSSES, GBX_RECORD_LOSS, &all);
    walk_list(reader, GBX_LIST_SKIPPED, GBX_RECORD_SKIPPED, &all);
    walk_list(reader, GBX_LIST_SAMPLES, GBX_RECORD_SAMPLE, &all);
    walk_payload(reader);
    seen again = walk_all(reader);
    FUZZ_CHECK(memcmp(&again, &all, sizeof all) == 0);
}
