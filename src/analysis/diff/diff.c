#include "analysis/diff/diff.h"

#include <stdlib.h>

#include "analysis/diff/internal.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "tensor/view.h"

/* --- names --- */

#define ROW(number, text, words) [number] = {.name = (text), .brief = (text), .sentence = (words)}
#define SET(table)                                                                                 \
    { .rows = (table), .count = sizeof(table) / sizeof *(table) }

static const gbx_name verdicts[GBX_DIFF_VERDICT_COUNT] = {
    ROW(GBX_DIFF_EQUAL, "equal", "equal"),
    ROW(GBX_DIFF_WITHIN, "within", "within tolerance"),
    ROW(GBX_DIFF_DIFFERENT, "different", "different"),
    ROW(GBX_DIFF_ONLY_A, "only_a", "only in A"),
    ROW(GBX_DIFF_ONLY_B, "only_b", "only in B"),
    ROW(GBX_DIFF_NOT_COMPARED, "not_compared", "not compared"),
};
const gbx_name_set gbx_diff_verdicts = SET(verdicts);

static const gbx_name reasons[GBX_DIFF_REASON_COUNT] = {
    ROW(GBX_DIFF_VALUES, "values", NULL),
    ROW(GBX_DIFF_KIND, "kind", NULL),
    ROW(GBX_DIFF_DTYPE, "dtype", NULL),
    ROW(GBX_DIFF_SHAPE, "shape", NULL),
    ROW(GBX_DIFF_HASH, "hash", NULL),
    ROW(GBX_DIFF_NO_PAYLOAD, "no_payload",
        "payload is missing, and no hashes cover the same bytes"),
    ROW(GBX_DIFF_OVERWRITTEN, "overwritten",
        "overwritten: the stored bytes are not the argument's"),
    ROW(GBX_DIFF_IN_FLIGHT, "in_flight", "in flight: the task did not complete"),
    ROW(GBX_DIFF_TRUNCATED, "truncated", "truncated before the first element"),
    ROW(GBX_DIFF_NAN_UNKNOWN, "nan_unknown", "equal hashes, but no payload to search for NaN"),
    ROW(GBX_DIFF_KERNELS, "kernels", NULL),
    ROW(GBX_DIFF_TASK, "task", NULL),
    ROW(GBX_DIFF_RECORD, "record", NULL),
};
const gbx_name_set gbx_diff_reasons = SET(reasons);

static const gbx_name causes[] = {
    ROW(GBX_DIFF_CAUSE_UNKNOWN, NULL, NULL),
    ROW(GBX_DIFF_INTRODUCED, "introduced", NULL),
    ROW(GBX_DIFF_INHERITED, "inherited", NULL),
};
const gbx_name_set gbx_diff_causes = SET(causes);

static const gbx_name matchings[] = {
    ROW(GBX_DIFF_BY_NUMBER, "task_seq", NULL),
    ROW(GBX_DIFF_BY_TASK_ID, "task_id", NULL),
    ROW(GBX_DIFF_BY_ORDER, "order", NULL),
};
const gbx_name_set gbx_diff_matchings = SET(matchings);

/* --- state --- */

/* The entries of a task that remain in both dumps, sorted by stage and arg_index. */
typedef struct task_cursor {
    uint64_t a;
    uint64_t end_a;
    uint64_t b;
    uint64_t end_b;
} task_cursor;

/* What is known of the inputs of the current task. */
typedef struct task_inputs {
    bool has_any;
    bool has_within;
    bool has_hidden;      /* some are not selected, and not compared yet */
    uint64_t differing;   /* the first that is different: an entry of A; or GBX_DIFF_NONE */
    uint64_t uncompared;  /* the first not compared completely, or only in one dump */
    bool uncompared_is_b; /* `uncompared` is an entry of B */
    bool has_beginning;   /* its beginning was compared */
} task_inputs;

typedef struct diff_walk {
    gbx_diff_side a;
    gbx_diff_side b;
    gbx_reader *reader_a;
    gbx_reader *reader_b;
    const gbx_diff_options *options;
    const gbx_diff_observer *observer;
    gbx_diff_result *result;
    gbx_diff_tasks tasks;
    uint64_t place; /* of the current task, in `tasks` */
    task_inputs inputs;
    bool is_different;    /* the current task is counted in tasks_different */
    bool is_introduced;   /* likewise */
    bool is_unknown;      /* likewise */
    bool is_whole;        /* both dumps have every task */
    bool has_whole_tasks; /* one of them has all arguments of each of its tasks */
    uint64_t first_place; /* of the task of the first record that differs */
    unsigned char *pieces;
    gbx_entry entry_a; /* of the current record */
    gbx_entry entry_b;
} diff_walk;

/* --- the records of a task --- */

static void open_range(const gbx_entries *entries, uint64_t task, uint64_t *out_begin,
                       uint64_t *out_end) {
    bool is_there = task != GBX_DIFF_NONE;
    *out_begin = is_there ? gbx_entries_find(entries, task) : 0;
    *out_end = is_there ? gbx_entries_find(entries, task + 1) : 0;
}

static task_cursor open_task(const diff_walk *walk, uint64_t place) {
    const gbx_diff_task *task = &walk->tasks.items[place];
    task_cursor cursor;
    open_range(walk->a.entries, task->a, &cursor.a, &cursor.end_a);
    open_range(walk->b.entries, task->b, &cursor.b, &cursor.end_b);
    return cursor;
}

static unsigned entry_key(const gbx_entry *entry) {
    return (unsigned)entry->head->stage << 8 | entry->head->arg_index;
}

/* The next record; its entries live until the next call. *out_is_there: false after the last. */
static gbx_status next_record(diff_walk *walk, task_cursor *cursor, gbx_diff_record *out_record,
                              bool *out_is_there) {
    bool has_a = cursor->a < cursor->end_a;
    bool has_b = cursor->b < cursor->end_b;
    *out_is_there = has_a || has_b;
    if (has_a)
        GBX_TRY(gbx_entries_at(walk->a.entries, cursor->a, &walk->entry_a));
    if (has_b)
        GBX_TRY(gbx_entries_at(walk->b.entries, cursor->b, &walk->entry_b));
    if (has_a && has_b) {
        unsigned key_a = entry_key(&walk->entry_a);
        unsigned key_b = entry_key(&walk->entry_b);
        has_a = key_a <= key_b;
        has_b = key_b <= key_a;
    }
    *out_record = (gbx_diff_record){.index_a = has_a ? cursor->a++ : GBX_DIFF_NONE,
                                    .index_b = has_b ? cursor->b++ : GBX_DIFF_NONE,
                                    .a = has_a ? &walk->entry_a : NULL,
                                    .b = has_b ? &walk->entry_b : NULL,
                                    .input = GBX_DIFF_NONE};
    return NULL;
}

static void on_read(void *context, uint64_t bytes) {
    diff_walk *walk = context;
    const gbx_diff_observer *observer = walk->observer;
    walk->result->read_bytes += bytes;
    if (observer->on_progress)
        observer->on_progress(observer->context, walk->place, walk->tasks.count,
                              walk->result->read_bytes);
}

/* Compares the two entries of a record. */
static gbx_status compare_record(diff_walk *walk, gbx_diff_record *record) {
    gbx_diff_pair pair = {.a = record->a,
                          .b = record->b,
                          .reader_a = walk->reader_a,
                          .reader_b = walk->reader_b,
                          .options = walk->options,
                          .pieces = walk->pieces,
                          .on_read = on_read,
                          .context = walk};
    return gbx_diff_pair_compare(&pair, record);
}

static bool is_in(const gbx_diff_side *side, uint64_t index) {
    if (index == GBX_DIFF_NONE || !side->selected)
        return index != GBX_DIFF_NONE;
    uint64_t at = gbx_lower_bound_u64(side->selected, side->selected_count, index);
    return at < side->selected_count && side->selected[at] == index;
}

static bool is_selected(const diff_walk *walk, const gbx_diff_record *record) {
    return is_in(&walk->a, record->index_a) || is_in(&walk->b, record->index_b);
}

/* --- the cause --- */

static bool is_input(const gbx_diff_record *record) {
    return (record->a ? record->a : record->b)->head->stage == GBX_STAGE_BEFORE;
}

static void note_input(task_inputs *inputs, const gbx_diff_record *record) {
    bool is_near = record->verdict == GBX_DIFF_EQUAL || record->verdict == GBX_DIFF_WITHIN;
    bool is_known = is_near && !record->is_truncated;
    inputs->has_any = true;
    inputs->has_within |= record->verdict == GBX_DIFF_WITHIN;
    if (record->verdict == GBX_DIFF_DIFFERENT && inputs->differing == GBX_DIFF_NONE)
        inputs->differing = record->index_a;
    if (is_known || record->verdict == GBX_DIFF_DIFFERENT || inputs->uncompared != GBX_DIFF_NONE)
        return;
    inputs->uncompared_is_b = record->index_a == GBX_DIFF_NONE;
    inputs->uncompared = inputs->uncompared_is_b ? record->index_b : record->index_a;
    inputs->has_beginning = is_near;
}

static gbx_status judge(diff_walk *walk, gbx_diff_record *record) {
    if (record->a && record->b)
        return compare_record(walk, record);
    const gbx_diff_task *task = &walk->tasks.items[walk->place];
    bool has_both = task->a != GBX_DIFF_NONE && task->b != GBX_DIFF_NONE;
    record->verdict = record->a ? GBX_DIFF_ONLY_A : GBX_DIFF_ONLY_B;
    record->reason = has_both ? GBX_DIFF_RECORD : GBX_DIFF_TASK;
    return NULL;
}

/* Compares inputs that are not selected: the cause must not depend on what the user selects. */
static gbx_status compare_hidden(diff_walk *walk) {
    task_cursor cursor = open_task(walk, walk->place);
    gbx_diff_record record;
    bool is_there = true;
    walk->inputs.has_hidden = false;
    while (true) {
        GBX_TRY(next_record(walk, &cursor, &record, &is_there));
        if (!is_there || !is_input(&record))
            return NULL;
        if (is_selected(walk, &record))
            continue;
        GBX_TRY(judge(walk, &record));
        note_input(&walk->inputs, &record);
    }
}

static gbx_status find_cause(diff_walk *walk, gbx_diff_record *record) {
    if (is_input(record)) {
        record->cause = GBX_DIFF_INHERITED;
        record->ground = GBX_DIFF_IS_INPUT;
        return NULL;
    }
    if (walk->inputs.has_hidden) {
        GBX_TRY(compare_hidden(walk)); /* which overwrites the entries of the record */
        GBX_TRY(gbx_entries_at(walk->a.entries, record->index_a, &walk->entry_a));
        GBX_TRY(gbx_entries_at(walk->b.entries, record->index_b, &walk->entry_b));
    }
    const task_inputs *inputs = &walk->inputs;
    record->cause = GBX_DIFF_CAUSE_UNKNOWN;
    if (inputs->differing != GBX_DIFF_NONE) {
        record->cause = GBX_DIFF_INHERITED;
        record->ground = GBX_DIFF_INPUT_DIFFERS;
        record->input = inputs->differing;
    } else if (inputs->uncompared != GBX_DIFF_NONE) {
        record->ground =
            inputs->has_beginning ? GBX_DIFF_INPUTS_TRUNCATED : GBX_DIFF_INPUTS_NOT_COMPARED;
        record->input = inputs->uncompared;
        record->input_is_b = inputs->uncompared_is_b;
    } else if (!walk->has_whole_tasks) {
        record->ground = GBX_DIFF_INPUTS_UNKNOWN;
    } else {
        record->cause = GBX_DIFF_INTRODUCED;
        record->ground = inputs->has_within ? GBX_DIFF_INPUTS_WITHIN
                         : inputs->has_any  ? GBX_DIFF_INPUTS_EQUAL
                                            : GBX_DIFF_INPUTS_NONE;
    }
    return NULL;
}

/* --- the result --- */

static void count(gbx_diff_result *result, const gbx_diff_record *record) {
    bool is_compared = record->verdict <= GBX_DIFF_DIFFERENT;
    result->counts[record->verdict]++;
    result->compared += is_compared;
    result->truncated += is_compared && record->is_truncated;
    result->hashed += record->is_hashed;
    if (record->verdict >= GBX_DIFF_DIFFERENT)
        result->reasons[record->reason]++;
}

static void note_different(diff_walk *walk, const gbx_diff_record *record) {
    gbx_diff_result *result = walk->result;
    bool is_introduced = record->cause == GBX_DIFF_INTRODUCED;
    bool is_unknown = record->cause == GBX_DIFF_CAUSE_UNKNOWN;
    result->tasks_different += !walk->is_different;
    result->tasks_introduced += is_introduced && !walk->is_introduced;
    result->tasks_unknown += is_unknown && !walk->is_unknown;
    walk->is_different = true;
    walk->is_introduced |= is_introduced;
    walk->is_unknown |= is_unknown;
    if (result->has_first)
        return;
    result->has_first = true;
    result->is_graph_first = result->has_other_graph;
    result->first = *record;
    result->first.a = NULL;
    result->first.b = NULL;
    walk->first_place = walk->place;
}

static gbx_status visit(diff_walk *walk, gbx_diff_record *record) {
    if (!is_selected(walk, record)) {
        walk->inputs.has_hidden |= is_input(record);
        return NULL;
    }
    GBX_TRY(judge(walk, record));
    count(walk->result, record);
    if (is_input(record))
        note_input(&walk->inputs, record);
    if (record->verdict == GBX_DIFF_EQUAL)
        return NULL;
    if (record->verdict == GBX_DIFF_DIFFERENT) {
        GBX_TRY(find_cause(walk, record));
        note_different(walk, record);
    }
    return walk->observer->on_record(walk->observer->context, record);
}

/* --- tasks --- */

/* The selected entries of one side of a task that is not the same in both dumps. */
static gbx_status visit_apart(diff_walk *walk, const task_cursor *cursor, bool is_a,
                              gbx_diff_reason reason) {
    uint64_t end = is_a ? cursor->end_a : cursor->end_b;
    for (uint64_t i = is_a ? cursor->a : cursor->b; i < end; ++i) {
        const gbx_diff_side *side = is_a ? &walk->a : &walk->b;
        gbx_entry *entry = is_a ? &walk->entry_a : &walk->entry_b;
        if (!is_in(side, i))
            continue;
        GBX_TRY(gbx_entries_at(side->entries, i, entry));
        gbx_diff_record record = {.index_a = is_a ? i : GBX_DIFF_NONE,
                                  .index_b = is_a ? GBX_DIFF_NONE : i,
                                  .a = is_a ? entry : NULL,
                                  .b = is_a ? NULL : entry,
                                  .verdict = is_a ? GBX_DIFF_ONLY_A : GBX_DIFF_ONLY_B,
                                  .reason = reason,
                                  .input = GBX_DIFF_NONE};
        count(walk->result, &record);
        GBX_TRY(walk->observer->on_record(walk->observer->context, &record));
    }
    return NULL;
}

static gbx_status visit_other(diff_walk *walk, const task_cursor *cursor, gbx_diff_reason reason) {
    gbx_diff_result *result = walk->result;
    uint64_t before = result->counts[GBX_DIFF_ONLY_A] + result->counts[GBX_DIFF_ONLY_B];
    GBX_TRY(visit_apart(walk, cursor, true, reason));
    GBX_TRY(visit_apart(walk, cursor, false, reason));
    uint64_t after = result->counts[GBX_DIFF_ONLY_A] + result->counts[GBX_DIFF_ONLY_B];
    if (after > before && (reason == GBX_DIFF_KERNELS || walk->is_whole) &&
        !result->has_other_graph) {
        result->has_other_graph = true;
        result->graph_a = cursor->a < cursor->end_a ? cursor->a : GBX_DIFF_NONE;
        result->graph_b = cursor->b < cursor->end_b ? cursor->b : GBX_DIFF_NONE;
    }
    return NULL;
}

static gbx_status visit_task(diff_walk *walk) {
    task_cursor cursor = open_task(walk, walk->place);
    gbx_diff_record record;
    bool is_there = true;
    walk->is_different = false;
    walk->is_introduced = false;
    walk->is_unknown = false;
    walk->inputs = (task_inputs){.differing = GBX_DIFF_NONE, .uncompared = GBX_DIFF_NONE};
    if (cursor.a == cursor.end_a || cursor.b == cursor.end_b)
        return visit_other(walk, &cursor, GBX_DIFF_TASK);
    GBX_TRY(gbx_entries_at(walk->a.entries, cursor.a, &walk->entry_a));
    GBX_TRY(gbx_entries_at(walk->b.entries, cursor.b, &walk->entry_b));
    if (!gbx_diff_kernels_match(walk->reader_a, &walk->entry_a, walk->reader_b, &walk->entry_b))
        return visit_other(walk, &cursor, GBX_DIFF_KERNELS);
    while (true) {
        GBX_TRY(next_record(walk, &cursor, &record, &is_there));
        if (!is_there)
            return NULL;
        GBX_TRY(visit(walk, &record));
    }
}

/* --- the origin: which task last wrote an input that differs --- */

static bool has_view(const gbx_entry *entry, gbx_tensor *out_view) {
    int64_t first, end;
    if (!entry->tensor)
        return false;
    gbx_record_view(entry->tensor, out_view);
    return gbx_tensor_is_valid(out_view, &first, &end);
}

/* Whether the view lies inside what was written; false if that has gaps. */
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

/* What one dump records about the memory of the first difference. */
typedef struct memory {
    gbx_entries *entries;
    bool is_b;
    bool is_known; /* the dump has addresses: */
    gbx_tensor view;
    uint64_t place; /* of the last earlier task that wrote there, */
    uint64_t index; /* and the entry it wrote; GBX_DIFF_NONE if there is none */
} memory;

/* Sets `index` to the last entry that a task wrote to the memory, if any. */
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

static gbx_status find_writer(diff_walk *walk, bool is_b, memory *out_memory) {
    memory *m = out_memory;
    const gbx_diff_record *first = &walk->result->first;
    gbx_entry entry;
    *m = (memory){
        .entries = is_b ? walk->b.entries : walk->a.entries, .is_b = is_b, .index = GBX_DIFF_NONE};
    GBX_TRY(gbx_entries_at(m->entries, is_b ? first->index_b : first->index_a, &entry));
    m->is_known =
        gbx_reader_get_origin(gbx_entries_reader(m->entries))->known & GBX_KNOWN_ADDRESSES;
    m->is_known = m->is_known && has_view(&entry, &m->view);
    for (uint64_t i = walk->first_place; m->is_known && i-- > 0 && m->index == GBX_DIFF_NONE;) {
        uint64_t task = is_b ? walk->tasks.items[i].b : walk->tasks.items[i].a;
        m->place = i;
        if (task != GBX_DIFF_NONE)
            GBX_TRY(find_write(m, task));
    }
    return NULL;
}

/* Compares the output of the writer, selected or not. `other` is of the other dump. */
static gbx_status judge_writer(diff_walk *walk, const memory *m, const memory *other) {
    gbx_diff_result *result = walk->result;
    /* The record of the last write, and whether the same task made it in both dumps. */
    gbx_diff_record record = {.index_a = GBX_DIFF_NONE, .index_b = GBX_DIFF_NONE};
    task_cursor cursor = open_task(walk, m->place);
    bool is_there = true;
    while (is_there && (m->is_b ? record.index_b : record.index_a) != m->index)
        GBX_TRY(next_record(walk, &cursor, &record, &is_there));
    bool is_pair = is_there && record.a && record.b &&
                   gbx_diff_kernels_match(walk->reader_a, record.a, walk->reader_b, record.b);
    bool is_apart = other->index != GBX_DIFF_NONE &&
                    (!is_pair || (m->is_b ? record.index_a : record.index_b) != other->index);
    result->origin = is_apart ? GBX_DIFF_ORIGIN_WRITERS_APART : GBX_DIFF_ORIGIN_WRITER_UNKNOWN;
    if (is_apart || !is_pair)
        return NULL;
    GBX_TRY(compare_record(walk, &record));
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

/* Whether it is certain that no task wrote there. */
static bool is_sure(const memory *m) {
    return m->is_known && m->index == GBX_DIFF_NONE &&
           gbx_dump_has_whole_graph(gbx_entries_reader(m->entries));
}

/* Finds `origin` and the writers of the first record that differs, which is an input. */
static gbx_status find_origin(diff_walk *walk) {
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

/* --- running --- */

static gbx_status run(diff_walk *walk) {
    GBX_TRY(gbx_diff_tasks_match(walk->a.entries, walk->b.entries, &walk->tasks));
    walk->result->matching = walk->tasks.matching;
    walk->result->bad_edges = walk->tasks.bad_edges;
    walk->pieces = aligned_alloc(64, 2 * GBX_DIFF_PIECE_BYTES);
    if (!walk->pieces)
        return gbx_fail_memory("comparing dumps");
    const gbx_diff_observer *observer = walk->observer;
    for (walk->place = 0; walk->place < walk->tasks.count; ++walk->place) {
        if (observer->on_progress)
            observer->on_progress(observer->context, walk->place, walk->tasks.count,
                                  walk->result->read_bytes);
        GBX_TRY(visit_task(walk));
    }
    if (walk->result->has_first && walk->result->first.ground == GBX_DIFF_IS_INPUT)
        return find_origin(walk);
    return NULL;
}

/* A run that did not end well may have tasks that never ran. */
static bool has_every_task(gbx_reader *reader) {
    return gbx_dump_has_whole_graph(reader) && gbx_reader_has_ended_well(reader);
}

gbx_status gbx_diff_run(const gbx_diff_side *a, const gbx_diff_side *b,
                        const gbx_diff_options *options, const gbx_diff_observer *observer,
                        gbx_diff_result *out_result) {
    diff_walk walk = {.a = *a,
                      .b = *b,
                      .reader_a = gbx_entries_reader(a->entries),
                      .reader_b = gbx_entries_reader(b->entries),
                      .options = options,
                      .observer = observer,
                      .result = out_result};
    *out_result = (gbx_diff_result){.writer_a = GBX_DIFF_NONE, .writer_b = GBX_DIFF_NONE};
    walk.is_whole = has_every_task(walk.reader_a) && has_every_task(walk.reader_b);
    walk.has_whole_tasks =
        gbx_dump_has_whole_tasks(walk.reader_a) || gbx_dump_has_whole_tasks(walk.reader_b);
    gbx_status status = run(&walk);
    gbx_diff_tasks_free(&walk.tasks);
    free(walk.pieces);
    return status;
}

gbx_status gbx_diff_check(gbx_entries *entries) {
    for (uint64_t i = 0; i < gbx_entries_count(entries); ++i) {
        gbx_entry entry;
        gbx_entry_values values;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (gbx_entry_has_values(&entry))
            GBX_TRY(gbx_entry_values_open(&entry, gbx_entries_reader(entries), &values));
    }
    return NULL;
}

bool gbx_diff_is_alike(const gbx_diff_result *result) {
    return result->compared > 0 && result->counts[GBX_DIFF_DIFFERENT] == 0 &&
           result->counts[GBX_DIFF_ONLY_A] + result->counts[GBX_DIFF_ONLY_B] == 0;
}
