#include "analysis/diff/diff.h"

#include <stdlib.h>

#include "analysis/diff/internal.h"
#include "base/memory.h"

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
        "payload is missing, and there are no hashes of the same bytes"),
    ROW(GBX_DIFF_OVERWRITTEN, "overwritten",
        "overwritten: the bytes are not those of the argument"),
    ROW(GBX_DIFF_IN_FLIGHT, "in_flight", "in flight: the task did not complete"),
    ROW(GBX_DIFF_TRUNCATED, "truncated", "truncated before the first element"),
    ROW(GBX_DIFF_NAN_UNKNOWN, "nan_unknown", "the same bytes, but no payload to look for NaN in"),
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

/* --- the records of a task --- */

static void open_range(const gbx_entries *entries, uint64_t task, uint64_t *out_begin,
                       uint64_t *out_end) {
    bool is_there = task != GBX_DIFF_NONE;
    *out_begin = is_there ? gbx_entries_find(entries, task) : 0;
    *out_end = is_there ? gbx_entries_find(entries, task + 1) : 0;
}

gbx_diff_cursor gbx_diff_walk_open(const gbx_diff_walk *walk, uint64_t place) {
    const gbx_diff_task *task = &walk->tasks.items[place];
    gbx_diff_cursor cursor;
    open_range(walk->a.entries, task->a, &cursor.a, &cursor.end_a);
    open_range(walk->b.entries, task->b, &cursor.b, &cursor.end_b);
    return cursor;
}

static unsigned entry_key(const gbx_entry *entry) {
    return (unsigned)entry->head->stage << 8 | entry->head->arg_index;
}

gbx_status gbx_diff_walk_next(gbx_diff_walk *walk, gbx_diff_cursor *cursor,
                              gbx_diff_record *out_record, bool *out_is_there) {
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
    gbx_diff_walk *walk = context;
    const gbx_diff_observer *observer = walk->observer;
    walk->result->read_bytes += bytes;
    if (observer->on_progress)
        observer->on_progress(observer->context, walk->place, walk->tasks.count,
                              walk->result->read_bytes);
}

gbx_status gbx_diff_walk_compare(gbx_diff_walk *walk, gbx_diff_record *record,
                                 bool *out_is_hashed) {
    gbx_diff_pair pair = {.a = record->a,
                          .b = record->b,
                          .reader_a = walk->reader_a,
                          .reader_b = walk->reader_b,
                          .options = walk->options,
                          .pieces = walk->pieces,
                          .on_read = on_read,
                          .context = walk};
    GBX_TRY(gbx_diff_pair_compare(&pair, record));
    *out_is_hashed = pair.is_hashed;
    return NULL;
}

static bool is_in(const gbx_diff_side *side, uint64_t index) {
    if (index == GBX_DIFF_NONE || !side->selected)
        return index != GBX_DIFF_NONE;
    uint64_t low = 0;
    uint64_t high = side->selected_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (side->selected[middle] < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < side->selected_count && side->selected[low] == index;
}

static bool is_selected(const gbx_diff_walk *walk, const gbx_diff_record *record) {
    return is_in(&walk->a, record->index_a) || is_in(&walk->b, record->index_b);
}

/* --- the cause --- */

static bool is_input(const gbx_diff_record *record) {
    return (record->a ? record->a : record->b)->head->stage == GBX_STAGE_BEFORE;
}

static void note_input(gbx_diff_inputs *inputs, const gbx_diff_record *record) {
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

static gbx_status judge(gbx_diff_walk *walk, gbx_diff_record *record, bool *out_is_hashed) {
    *out_is_hashed = false;
    if (record->a && record->b)
        return gbx_diff_walk_compare(walk, record, out_is_hashed);
    const gbx_diff_task *task = &walk->tasks.items[walk->place];
    bool has_both = task->a != GBX_DIFF_NONE && task->b != GBX_DIFF_NONE;
    record->verdict = record->a ? GBX_DIFF_ONLY_A : GBX_DIFF_ONLY_B;
    record->reason = has_both ? GBX_DIFF_RECORD : GBX_DIFF_TASK;
    return NULL;
}

/* The inputs that are not selected: the cause must not depend on what the user wants to see. */
static gbx_status compare_hidden(gbx_diff_walk *walk) {
    gbx_diff_cursor cursor = gbx_diff_walk_open(walk, walk->place);
    gbx_diff_record record;
    bool is_there = true;
    bool is_hashed;
    walk->inputs.has_hidden = false;
    while (true) {
        GBX_TRY(gbx_diff_walk_next(walk, &cursor, &record, &is_there));
        if (!is_there || !is_input(&record))
            return NULL;
        if (is_selected(walk, &record))
            continue;
        GBX_TRY(judge(walk, &record, &is_hashed));
        note_input(&walk->inputs, &record);
    }
}

static gbx_status find_cause(gbx_diff_walk *walk, gbx_diff_record *record) {
    if (is_input(record)) {
        record->cause = GBX_DIFF_INHERITED;
        record->ground = GBX_DIFF_IS_INPUT;
        return NULL;
    }
    if (walk->inputs.has_hidden) {
        GBX_TRY(compare_hidden(walk)); /* entries of the record have to be read again */
        GBX_TRY(gbx_entries_at(walk->a.entries, record->index_a, &walk->entry_a));
        GBX_TRY(gbx_entries_at(walk->b.entries, record->index_b, &walk->entry_b));
    }
    const gbx_diff_inputs *inputs = &walk->inputs;
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
        record->ground = GBX_DIFF_INPUTS_NOT_TOLD;
    } else {
        record->cause = GBX_DIFF_INTRODUCED;
        record->ground = inputs->has_within ? GBX_DIFF_INPUTS_WITHIN
                         : inputs->has_any  ? GBX_DIFF_INPUTS_EQUAL
                                            : GBX_DIFF_INPUTS_NONE;
    }
    return NULL;
}

/* --- the result --- */

static void count(gbx_diff_result *result, const gbx_diff_record *record, bool is_hashed) {
    bool is_compared = record->verdict <= GBX_DIFF_DIFFERENT;
    result->counts[record->verdict]++;
    result->compared += is_compared;
    result->truncated += is_compared && record->is_truncated;
    result->hashed += is_hashed;
    if (record->verdict >= GBX_DIFF_DIFFERENT)
        result->reasons[record->reason]++;
}

static void note_different(gbx_diff_walk *walk, const gbx_diff_record *record) {
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

static gbx_status tell(gbx_diff_walk *walk, gbx_diff_record *record) {
    if (record->verdict == GBX_DIFF_DIFFERENT) {
        GBX_TRY(find_cause(walk, record));
        note_different(walk, record);
    }
    return walk->observer->on_record(walk->observer->context, record);
}

static gbx_status visit(gbx_diff_walk *walk, gbx_diff_record *record) {
    bool is_hashed;
    if (!is_selected(walk, record)) {
        walk->inputs.has_hidden |= is_input(record);
        return NULL;
    }
    GBX_TRY(judge(walk, record, &is_hashed));
    count(walk->result, record, is_hashed);
    if (is_input(record))
        note_input(&walk->inputs, record);
    return record->verdict == GBX_DIFF_EQUAL ? NULL : tell(walk, record);
}

/* --- tasks --- */

/* A task that is not the same in both: what of it is asked for has no counterpart. */
static gbx_status visit_apart(gbx_diff_walk *walk, const gbx_diff_cursor *cursor, bool is_a,
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
        count(walk->result, &record, false);
        GBX_TRY(walk->observer->on_record(walk->observer->context, &record));
    }
    return NULL;
}

static void note_graph(gbx_diff_result *result, const gbx_diff_cursor *cursor) {
    if (result->has_other_graph)
        return;
    result->has_other_graph = true;
    result->graph_a = cursor->a < cursor->end_a ? cursor->a : GBX_DIFF_NONE;
    result->graph_b = cursor->b < cursor->end_b ? cursor->b : GBX_DIFF_NONE;
}

static gbx_status visit_other(gbx_diff_walk *walk, const gbx_diff_cursor *cursor,
                              gbx_diff_reason reason) {
    gbx_diff_result *result = walk->result;
    uint64_t before = result->counts[GBX_DIFF_ONLY_A] + result->counts[GBX_DIFF_ONLY_B];
    GBX_TRY(visit_apart(walk, cursor, true, reason));
    GBX_TRY(visit_apart(walk, cursor, false, reason));
    uint64_t after = result->counts[GBX_DIFF_ONLY_A] + result->counts[GBX_DIFF_ONLY_B];
    if (after > before && (reason == GBX_DIFF_KERNELS || walk->is_whole))
        note_graph(result, cursor);
    return NULL;
}

static gbx_status visit_task(gbx_diff_walk *walk) {
    gbx_diff_cursor cursor = gbx_diff_walk_open(walk, walk->place);
    gbx_diff_record record;
    bool is_there = true;
    walk->is_different = false;
    walk->is_introduced = false;
    walk->is_unknown = false;
    walk->inputs = (gbx_diff_inputs){.differing = GBX_DIFF_NONE, .uncompared = GBX_DIFF_NONE};
    if (cursor.a == cursor.end_a || cursor.b == cursor.end_b)
        return visit_other(walk, &cursor, GBX_DIFF_TASK);
    GBX_TRY(gbx_entries_at(walk->a.entries, cursor.a, &walk->entry_a));
    GBX_TRY(gbx_entries_at(walk->b.entries, cursor.b, &walk->entry_b));
    if (!gbx_diff_kernels_match(walk->reader_a, &walk->entry_a, walk->reader_b, &walk->entry_b))
        return visit_other(walk, &cursor, GBX_DIFF_KERNELS);
    while (true) {
        GBX_TRY(gbx_diff_walk_next(walk, &cursor, &record, &is_there));
        if (!is_there)
            return NULL;
        GBX_TRY(visit(walk, &record));
    }
}

static gbx_status run(gbx_diff_walk *walk) {
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
        return gbx_diff_walk_find_origin(walk);
    return NULL;
}

/* One that did not end well has tasks that were not run. */
static bool has_every_task(gbx_reader *reader) {
    return gbx_dump_has_whole_graph(reader) && gbx_reader_has_ended_well(reader);
}

gbx_status gbx_diff_run(const gbx_diff_side *a, const gbx_diff_side *b,
                        const gbx_diff_options *options, const gbx_diff_observer *observer,
                        gbx_diff_result *out_result) {
    gbx_diff_walk walk = {.a = *a,
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
