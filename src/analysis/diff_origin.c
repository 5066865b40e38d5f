/* Where an input that differs comes from: who wrote to its memory last. */
#include "analysis/diff_walk.h"
#include "tensor/view.h"

static bool has_view(const gbx_entry *entry, gbx_tensor *out_view) {
    int64_t first, end;
    if (!entry->tensor)
        return false;
    gbx_record_view(entry->tensor, out_view);
    return gbx_tensor_is_valid(out_view, &first, &end);
}

/* Whether the view lies in what was written, as far as that is easily told: without gaps. */
static bool covers(const gbx_tensor *written, const gbx_tensor *view) {
    int64_t first, end, first_written, end_written;
    gbx_tensor_extent(view, &first, &end);
    gbx_tensor_extent(written, &first_written, &end_written);
    return gbx_tensor_is_contiguous(written) &&
           written->data + (uint64_t)first_written <= view->data + (uint64_t)first &&
           view->data + (uint64_t)end <= written->data + (uint64_t)end_written;
}

static bool is_same_view(const gbx_tensor *a, const gbx_tensor *b) {
    bool is_same = a->data == b->data && a->dtype == b->dtype && a->ndims == b->ndims &&
                   a->start_offset == b->start_offset;
    for (uint32_t i = 0; is_same && i < a->ndims; ++i)
        is_same = a->shape[i] == b->shape[i] && a->strides[i] == b->strides[i];
    return is_same;
}

/* The entry of A that a task left in the memory of `view`; GBX_DIFF_NONE where it left none. */
static gbx_status find_write(gbx_diff_walk *walk, uint64_t task, const gbx_tensor *view,
                             uint64_t *out_index) {
    gbx_entries *entries = walk->a.entries;
    uint64_t end = gbx_entries_find(entries, task + 1);
    *out_index = GBX_DIFF_NONE;
    for (uint64_t i = gbx_entries_find(entries, task); i < end; ++i) {
        gbx_entry entry;
        gbx_tensor written;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (entry.head->stage == GBX_STAGE_AFTER && has_view(&entry, &written) &&
            gbx_tensor_overlaps(view, &written))
            *out_index = i;
    }
    return NULL;
}

/* The last task before that of the first difference that wrote there, and its place. */
static gbx_status find_writer(gbx_diff_walk *walk, const gbx_tensor *view, uint64_t *out_place,
                              uint64_t *out_index) {
    *out_index = GBX_DIFF_NONE;
    for (uint64_t i = walk->first_place; i-- > 0 && *out_index == GBX_DIFF_NONE;) {
        *out_place = i;
        if (walk->tasks.items[i].a != GBX_DIFF_NONE)
            GBX_TRY(find_write(walk, walk->tasks.items[i].a, view, out_index));
    }
    return NULL;
}

/* Compares what the writer left, whether it was selected or not. */
static gbx_status judge_writer(gbx_diff_walk *walk, uint64_t place, const gbx_tensor *view) {
    gbx_diff_result *result = walk->result;
    gbx_diff_cursor cursor = gbx_diff_walk_open(walk, place);
    gbx_diff_record record = {.index_a = GBX_DIFF_NONE};
    bool is_there = true;
    bool is_hashed;
    while (is_there && record.index_a != result->writer)
        GBX_TRY(gbx_diff_walk_next(walk, &cursor, &record, &is_there));
    result->origin = GBX_DIFF_ORIGIN_WRITER_UNKNOWN;
    if (!is_there || !record.a || !record.b ||
        !gbx_diff_kernels_match(walk->reader_a, record.a, walk->reader_b, record.b))
        return NULL;
    GBX_TRY(gbx_diff_walk_compare(walk, &record, &is_hashed));
    gbx_tensor written;
    gbx_record_view(record.a->tensor, &written);
    if (record.verdict == GBX_DIFF_EQUAL || record.verdict == GBX_DIFF_WITHIN)
        result->origin = covers(&written, view) || is_same_view(&written, view)
                             ? GBX_DIFF_ORIGIN_WRITER_EQUAL
                             : GBX_DIFF_ORIGIN_WRITER_PART;
    else if (record.verdict == GBX_DIFF_DIFFERENT)
        result->origin = GBX_DIFF_ORIGIN_WRITER_DIFFERS;
    return NULL;
}

gbx_status gbx_diff_walk_find_origin(gbx_diff_walk *walk) {
    gbx_diff_result *result = walk->result;
    gbx_entry entry;
    gbx_tensor view;
    uint64_t place = 0;
    gbx_diff_reason reason = result->first.reason;
    if (reason == GBX_DIFF_KIND || reason == GBX_DIFF_DTYPE || reason == GBX_DIFF_SHAPE) {
        result->origin = GBX_DIFF_ORIGIN_FORM;
        return NULL;
    }
    GBX_TRY(gbx_entries_at(walk->a.entries, result->first.index_a, &entry));
    result->origin = entry.scalar ? GBX_DIFF_ORIGIN_PASSED : GBX_DIFF_ORIGIN_UNKNOWN;
    bool has_addresses = gbx_reader_get_origin(walk->reader_a)->told & GBX_TOLD_ADDRESSES;
    if (entry.scalar || !has_addresses || !has_view(&entry, &view))
        return NULL;
    GBX_TRY(find_writer(walk, &view, &place, &result->writer));
    if (result->writer != GBX_DIFF_NONE)
        return judge_writer(walk, place, &view);
    if (gbx_diff_has_whole_graph(walk->reader_a))
        result->origin = GBX_DIFF_ORIGIN_ARGUMENT;
    return NULL;
}
