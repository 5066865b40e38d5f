/* Where an input that differs comes from: who wrote to its memory last. */
#include "analysis/diff/internal.h"
#include "tensor/view.h"

static bool has_view(const gbx_entry *entry, gbx_tensor *out_view) {
    int64_t first, end;
    if (!entry->tensor)
        return false;
    gbx_record_view(entry->tensor, out_view);
    return gbx_tensor_is_valid(out_view, &first, &end);
}

/* Whether the view lies in what was written, as far as that is easily seen: without gaps. */
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

/* What one dump tells of the memory of the first difference. */
typedef struct memory {
    gbx_entries *entries;
    bool is_b;
    bool is_known; /* it has addresses: */
    gbx_tensor view;
    uint64_t place; /* of the task that wrote there last, and the entry that it left there; */
    uint64_t index; /* GBX_DIFF_NONE where there is none before that of the first difference */
} memory;

/* The entry that a task left in the memory; GBX_DIFF_NONE where it left none. */
static gbx_status find_write(memory *m, uint64_t task) {
    uint64_t end = gbx_entries_find(m->entries, task + 1);
    for (uint64_t i = gbx_entries_find(m->entries, task); i < end; ++i) {
        gbx_entry entry;
        gbx_tensor written;
        GBX_TRY(gbx_entries_at(m->entries, i, &entry));
        if (entry.head->stage == GBX_STAGE_AFTER && has_view(&entry, &written) &&
            gbx_tensor_overlaps(&m->view, &written))
            m->index = i;
    }
    return NULL;
}

static gbx_status find_writer(gbx_diff_walk *walk, bool is_b, memory *out_memory) {
    memory *m = out_memory;
    const gbx_diff_record *first = &walk->result->first;
    gbx_entry entry;
    *m = (memory){
        .entries = is_b ? walk->b.entries : walk->a.entries, .is_b = is_b, .index = GBX_DIFF_NONE};
    GBX_TRY(gbx_entries_at(m->entries, is_b ? first->index_b : first->index_a, &entry));
    m->is_known = gbx_reader_get_origin(gbx_entries_reader(m->entries))->told & GBX_TOLD_ADDRESSES;
    m->is_known = m->is_known && has_view(&entry, &m->view);
    for (uint64_t i = walk->first_place; m->is_known && i-- > 0 && m->index == GBX_DIFF_NONE;) {
        uint64_t task = is_b ? walk->tasks.items[i].b : walk->tasks.items[i].a;
        m->place = i;
        if (task != GBX_DIFF_NONE)
            GBX_TRY(find_write(m, task));
    }
    return NULL;
}

/* Compares what the writer left, whether it was selected or not. `other` is the other dump's. */
static gbx_status judge_writer(gbx_diff_walk *walk, const memory *m, const memory *other) {
    gbx_diff_result *result = walk->result;
    gbx_diff_record record;
    bool is_pair, is_hashed;
    /* The record of what was written there last, and whether it is of the same task in both dumps.
     */
    gbx_diff_cursor cursor = gbx_diff_walk_open(walk, m->place);
    bool is_there = true;
    record = (gbx_diff_record){.index_a = GBX_DIFF_NONE, .index_b = GBX_DIFF_NONE};
    while (is_there && (m->is_b ? record.index_b : record.index_a) != m->index)
        GBX_TRY(gbx_diff_walk_next(walk, &cursor, &record, &is_there));
    is_pair = is_there && record.a && record.b &&
              gbx_diff_kernels_match(walk->reader_a, record.a, walk->reader_b, record.b);
    bool is_apart = other->index != GBX_DIFF_NONE &&
                    (!is_pair || (m->is_b ? record.index_a : record.index_b) != other->index);
    result->origin = is_apart ? GBX_DIFF_ORIGIN_WRITERS_APART : GBX_DIFF_ORIGIN_WRITER_UNKNOWN;
    if (is_apart || !is_pair)
        return NULL;
    GBX_TRY(gbx_diff_walk_compare(walk, &record, &is_hashed));
    gbx_tensor written;
    gbx_record_view((m->is_b ? record.b : record.a)->tensor, &written);
    bool is_near = record.verdict == GBX_DIFF_EQUAL || record.verdict == GBX_DIFF_WITHIN;
    if (is_near && !record.is_truncated)
        result->origin = covers(&written, &m->view) || is_same_view(&written, &m->view)
                             ? GBX_DIFF_ORIGIN_WRITER_EQUAL
                             : GBX_DIFF_ORIGIN_WRITER_PART;
    else if (record.verdict == GBX_DIFF_DIFFERENT)
        result->origin = GBX_DIFF_ORIGIN_WRITER_DIFFERS;
    return NULL;
}

/* Whether the dump is sure to know that no task wrote there. */
static bool is_sure(const memory *m) {
    return m->is_known && m->index == GBX_DIFF_NONE &&
           gbx_dump_has_whole_graph(gbx_entries_reader(m->entries));
}

gbx_status gbx_diff_walk_find_origin(gbx_diff_walk *walk) {
    gbx_diff_result *result = walk->result;
    gbx_diff_reason reason = result->first.reason;
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(walk->a.entries, result->first.index_a, &entry));
    if (reason == GBX_DIFF_KIND || reason == GBX_DIFF_DTYPE || reason == GBX_DIFF_SHAPE) {
        result->origin = GBX_DIFF_ORIGIN_FORM;
    } else if (entry.scalar) {
        result->origin = GBX_DIFF_ORIGIN_PASSED;
    } else {
        memory a, b;
        GBX_TRY(find_writer(walk, false, &a));
        GBX_TRY(find_writer(walk, true, &b));
        result->writer_a = a.index;
        result->writer_b = b.index;
        bool has_a = a.index != GBX_DIFF_NONE, has_b = b.index != GBX_DIFF_NONE;
        if (!has_a && !has_b)
            result->origin =
                is_sure(&a) || is_sure(&b) ? GBX_DIFF_ORIGIN_ARGUMENT : GBX_DIFF_ORIGIN_UNKNOWN;
        else if (is_sure(&a) || is_sure(&b))
            result->origin = GBX_DIFF_ORIGIN_WRITERS_APART;
        else
            return has_a ? judge_writer(walk, &a, &b) : judge_writer(walk, &b, &a);
    }
    return NULL;
}
