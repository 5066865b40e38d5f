/* What is odd about who reads and writes what: follows memory through the graph. */
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "analysis/audit/internal.h"
#include "base/memory.h"
#include "diagnose/odd.h"
#include "tensor/view.h"

#define NO_ROW UINT64_MAX
#define PIECES_MAX (UINT64_C(1) << 12) /* of a view; it is not followed if it has more */

static const char doing[] = "following the arguments of tasks";

/* A tensor argument of a task: what it read, or what it left. */
typedef struct flow_row {
    uint64_t entry;
    uint64_t task;
    uint64_t writer; /* of an input: the row that left its first byte with a writer, or NO_ROW */
    uint64_t first_reader; /* of what was left; NO_ROW for nobody, like the next */
    uint64_t second_reader;
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    uint8_t slot;
    uint8_t role;
    bool is_written; /* a row of what the task left */
    bool is_overwritten;
} flow_row;

typedef struct flow {
    gbx_entries *entries;
    gbx_memory_map *map; /* the owner is the row that left the bytes */
    flow_row *rows;      /* in graph order; of a task, what it read comes first */
    uint64_t count;
    uint64_t capacity;
    gbx_odd *odd;
} flow;

static bool is_same_argument(const flow_row *a, const flow_row *b) {
    return a->slot == b->slot && memcmp(a->func_ids, b->func_ids, sizeof a->func_ids) == 0;
}

static gbx_odd_argument about(const flow_row *row, gbx_odd_kind kind, const flow_row *other) {
    return (gbx_odd_argument){.kind = kind,
                              .task = row->task,
                              .entry = row->entry,
                              .other = other->task,
                              .other_entry = other->entry,
                              .unread = UINT64_MAX};
}

/* --- rows --- */

static void note_reader(flow *f, uint64_t writer, uint64_t reader) {
    flow_row *row = &f->rows[writer];
    if (row->first_reader == NO_ROW)
        row->first_reader = reader;
    else if (row->second_reader == NO_ROW &&
             f->rows[row->first_reader].task != f->rows[reader].task)
        row->second_reader = reader;
}

static void read_run(flow *f, uint64_t reader, const gbx_byte_run *run) {
    gbx_memory_range range;
    for (uint64_t at = run->begin;
         gbx_memory_map_find(f->map, at, &range) && range.begin < run->end; at = range.end) {
        if (f->rows[reader].writer == NO_ROW)
            f->rows[reader].writer = range.owner;
        note_reader(f, range.owner, reader);
    }
}

/* Two tasks write the same place with the same argument, and nobody has read it in between. */
static gbx_status look_below(flow *f, uint64_t writer, const gbx_byte_run *run) {
    gbx_memory_range range;
    for (uint64_t at = run->begin;
         gbx_memory_map_find(f->map, at, &range) && range.begin < run->end; at = range.end) {
        const flow_row *above = &f->rows[writer];
        flow_row *below = &f->rows[range.owner];
        if (below->first_reader != NO_ROW || below->is_overwritten || below->task == above->task ||
            above->role != GBX_ROLE_OUTPUT || below->role != GBX_ROLE_OUTPUT ||
            !is_same_argument(above, below))
            continue;
        below->is_overwritten = true;
        const gbx_odd_argument odd = about(above, GBX_ODD_LOST_WRITE, below);
        GBX_TRY(gbx_odd_add(f->odd, &odd));
    }
    return NULL;
}

static gbx_status follow_row(flow *f, uint64_t number, const gbx_record_tensor *record) {
    gbx_tensor view;
    int64_t first, end;
    gbx_byte_runs runs;
    gbx_byte_run run;
    gbx_record_view(record, &view);
    if (view.data == 0 || !gbx_tensor_is_valid(&view, &first, &end))
        return NULL;
    gbx_byte_runs_begin(&view, &runs);
    if (runs.left > PIECES_MAX || !gbx_memory_map_has_room(f->map, runs.left))
        return NULL;
    while (gbx_byte_runs_next(&runs, &run)) {
        if (!f->rows[number].is_written) {
            read_run(f, number, &run);
            continue;
        }
        GBX_TRY(look_below(f, number, &run));
        GBX_TRY(gbx_memory_map_set(
            f->map, &(const gbx_memory_range){run.begin, run.end, number, run.offset}));
    }
    return NULL;
}

static gbx_status add_row(flow *f, const gbx_entry *entry) {
    GBX_TRY(gbx_array_reserve(&f->rows, &f->capacity, f->count + 1, doing));
    flow_row *row = &f->rows[f->count++];
    *row = (flow_row){.entry = entry->index,
                      .task = entry->head->task,
                      .writer = NO_ROW,
                      .first_reader = NO_ROW,
                      .second_reader = NO_ROW,
                      .slot = entry->head->arg_index,
                      .role = entry->head->role,
                      .is_written = entry->head->stage == GBX_STAGE_AFTER};
    memcpy(row->func_ids, entry->task->func_ids, sizeof row->func_ids);
    return follow_row(f, f->count - 1, entry->tensor);
}

/* --- within one task --- */

static const char *name_of(flow *f, uint64_t row) {
    gbx_entry entry;
    gbx_status status = gbx_entries_at(f->entries, f->rows[row].entry, &entry);
    const char *name = status ? NULL : entry.arg_name;
    gbx_status_free(status);
    return name;
}

static bool is_called(flow *f, uint64_t row, uint64_t like) {
    const char *a = row == NO_ROW ? NULL : name_of(f, row), *b = name_of(f, like);
    return a && b && strcmp(a, b) == 0;
}

/* Inputs a and b of a task, where a gets what its writer calls b, and b what its writer calls a. */
static gbx_status look_for_swap(flow *f, uint64_t first) {
    for (uint64_t a = first; a < f->count; ++a)
        for (uint64_t b = a + 1; b < f->count; ++b) {
            if (f->rows[a].is_written || f->rows[b].is_written ||
                !is_called(f, f->rows[a].writer, b) || !is_called(f, f->rows[b].writer, a))
                continue;
            gbx_odd_argument odd = about(&f->rows[a], GBX_ODD_SWAPPED, &f->rows[f->rows[a].writer]);
            return gbx_odd_add(f->odd, &odd);
        }
    return NULL;
}

/* An output over an input: right only if each element is read before it is written. */
static gbx_status look_for_alias(flow *f, uint64_t first) {
    for (uint64_t a = first; a < f->count; ++a)
        for (uint64_t b = first; b < f->count && f->rows[a].role == GBX_ROLE_OUTPUT; ++b) {
            gbx_entry entry;
            gbx_tensor output, input;
            if (f->rows[b].role != GBX_ROLE_INPUT)
                continue;
            GBX_TRY(gbx_entries_at(f->entries, f->rows[a].entry, &entry));
            gbx_record_view(entry.tensor, &output);
            GBX_TRY(gbx_entries_at(f->entries, f->rows[b].entry, &entry));
            gbx_record_view(entry.tensor, &input);
            if (output.data == 0 || !gbx_tensor_overlaps(&output, &input))
                continue;
            gbx_odd_argument odd = about(&f->rows[a], GBX_ODD_ALIAS, &f->rows[b]);
            return gbx_odd_add(f->odd, &odd);
        }
    return NULL;
}

static gbx_status follow_task(flow *f, uint64_t task) {
    uint64_t first = f->count;
    gbx_entry entry;
    for (uint64_t i = gbx_entries_find(f->entries, task); i < gbx_entries_count(f->entries); ++i) {
        GBX_TRY(gbx_entries_at(f->entries, i, &entry));
        if (entry.head->task != task)
            break;
        if (entry.tensor && entry.task && !(entry.head->flags & GBX_FLAG_IN_FLIGHT))
            GBX_TRY(add_row(f, &entry));
    }
    GBX_TRY(look_for_swap(f, first));
    return look_for_alias(f, first);
}

/* --- what nobody reads --- */

/* What is part of a result is read by whoever started the run. */
static gbx_status read_results(flow *f, bool *out_are_known) {
    gbx_reader *reader = gbx_entries_reader(f->entries);
    *out_are_known = gbx_reader_result_count(reader) > 0;
    for (uint64_t i = 0; i < gbx_reader_result_count(reader); ++i) {
        gbx_result result;
        GBX_TRY(gbx_reader_result(reader, i, &result));
        *out_are_known &= result.piece_count > 0;
        for (uint64_t k = 0; k < result.piece_count; ++k) {
            const uint64_t end = result.pieces[k].address + result.pieces[k].bytes;
            gbx_memory_range range;
            for (uint64_t at = result.pieces[k].address;
                 gbx_memory_map_find(f->map, at, &range) && range.begin < end; at = range.end)
                if (f->rows[range.owner].first_reader == NO_ROW)
                    f->rows[range.owner].first_reader = range.owner;
        }
    }
    return NULL;
}

/* The sibling nearest in order that is read by two tasks; NO_ROW for none. */
static uint64_t find_read_twice(const flow *f, uint64_t unread) {
    uint64_t best = NO_ROW, distance = UINT64_MAX;
    for (uint64_t i = 0; i < f->count; ++i) {
        const flow_row *row = &f->rows[i];
        uint64_t from = i > unread ? i - unread : unread - i;
        if (!row->is_written || i == unread || row->second_reader == NO_ROW || from >= distance ||
            !is_same_argument(row, &f->rows[unread]))
            continue;
        best = i;
        distance = from;
    }
    return best;
}

/* Some siblings are read, and this one is not: who should have read it may have read another twice.
 * Only the first is looked at. */
static gbx_status look_for_unread(flow *f) {
    for (uint64_t i = 0; i < f->count; ++i) {
        const flow_row *row = &f->rows[i];
        if (!row->is_written || row->role != GBX_ROLE_OUTPUT || row->first_reader != NO_ROW ||
            row->is_overwritten)
            continue;
        uint64_t twice = find_read_twice(f, i);
        if (twice == NO_ROW)
            continue;
        const flow_row *reader = &f->rows[f->rows[twice].second_reader];
        gbx_odd_argument odd = about(reader, GBX_ODD_READ_TWICE, &f->rows[twice]);
        odd.unread = row->entry;
        odd.reader = f->rows[f->rows[twice].first_reader].entry;
        return gbx_odd_add(f->odd, &odd);
    }
    return NULL;
}

/* --- all of it --- */

static gbx_status follow_all(flow *f, const gbx_task_graph *graph) {
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &f->map));
    for (uint64_t i = 0; i < gbx_task_graph_count(graph); ++i)
        GBX_TRY(follow_task(f, gbx_task_graph_at(graph, i)->task));
    bool are_results_known;
    GBX_TRY(read_results(f, &are_results_known));
    return are_results_known ? look_for_unread(f) : NULL;
}

gbx_status gbx_odd_find_flow(gbx_entries *entries, const gbx_task_graph *graph, gbx_odd *odd) {
    flow f = {.entries = entries, .odd = odd};
    gbx_status status = follow_all(&f, graph);
    gbx_memory_map_destroy(f.map);
    free(f.rows);
    return status;
}
