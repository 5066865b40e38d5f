/* What is odd about who reads and writes what: follows memory through the graph. */
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "analysis/byte_runs.h"
#include "analysis/memory_map.h"
#include "analysis/new_memory.h"
#include "base/memory.h"
#include "diagnose/odd.h"
#include "tensor/view.h"

#define NO_ROW UINT64_MAX
#define PIECES_MAX (UINT64_C(1) << 12) /* of a view; it is not followed if it has more */

enum { NEW_MAX = 256 }; /* such inputs that are listed */

static const char doing[] = "following the arguments of tasks";

/* A tensor argument of a task: what it read, or what it left. */
typedef struct flow_row {
    uint64_t entry;
    uint64_t task;
    uint64_t elements;
    uint64_t writer; /* of an input: the row that left its first byte with a writer, or NO_ROW */
    uint64_t reads;  /* of what was left: arguments that read it; */
    uint64_t first_reader; /* rows, or NO_ROW */
    uint64_t last_reader;
    uint64_t above; /* the row that wrote over it before anybody had read it, or NO_ROW */
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    uint8_t slot;
    uint8_t role;
    uint64_t new_begin; /* of an input: bytes that no task has written, as far as they are known */
    uint64_t new_end;
    uint64_t new_offset; /* in the payload */
    bool is_written;     /* a row of what the task left */
    bool is_result;      /* a part of it is at the end of the run */
} flow_row;

typedef struct flow {
    gbx_entries *entries;
    gbx_memory_map *map; /* the owner is the row that left the bytes */
    flow_row *rows;      /* in graph order; of a task, what it read comes first */
    uint64_t count;
    uint64_t capacity;
    uint64_t new_count; /* inputs that hold new memory */
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
    if (row->last_reader == reader)
        return;
    if (row->first_reader == NO_ROW)
        row->first_reader = reader;
    row->last_reader = reader;
    ++row->reads;
}

/* The first bytes of a row that no task has written. */
static void note_new(flow_row *row, const gbx_byte_run *run, uint64_t begin, uint64_t end) {
    if (begin >= end || row->new_end > 0)
        return;
    row->new_begin = begin;
    row->new_end = end;
    row->new_offset = run->offset + (begin - run->begin);
}

static void read_run(flow *f, uint64_t reader, const gbx_byte_run *run) {
    flow_row *row = &f->rows[reader];
    gbx_memory_range range;
    uint64_t at = run->begin;
    for (; gbx_memory_map_find(f->map, at, &range) && range.begin < run->end; at = range.end) {
        note_new(row, run, at, range.begin);
        if (row->writer == NO_ROW)
            row->writer = range.owner;
        note_reader(f, range.owner, reader);
    }
    note_new(row, run, at, run->end);
}

/* Two tasks write the same place with the same argument, and no task reads it in between. Parts
 * that are written over a whole are no accident: the whole was filled first. */
static void look_below(flow *f, uint64_t writer, const gbx_byte_run *run) {
    gbx_memory_range range;
    for (uint64_t at = run->begin;
         gbx_memory_map_find(f->map, at, &range) && range.begin < run->end; at = range.end) {
        const flow_row *above = &f->rows[writer];
        flow_row *below = &f->rows[range.owner];
        if (below->reads == 0 && below->above == NO_ROW && below->task != above->task &&
            above->role == GBX_ROLE_OUTPUT && below->role == GBX_ROLE_OUTPUT &&
            above->elements >= below->elements && is_same_argument(above, below))
            below->above = writer;
    }
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
        look_below(f, number, &run);
        GBX_TRY(gbx_memory_map_set(
            f->map, &(const gbx_memory_range){run.begin, run.end, number, run.offset}));
    }
    return NULL;
}

/* Whether an input begins to be unwritten with an element that holds what new memory holds: what
 * was copied there before the run does not. */
static gbx_status look_for_new(flow *f, uint64_t number, const gbx_entry *entry) {
    const flow_row *row = &f->rows[number];
    const uint64_t bits = gbx_dtype_bits(entry->tensor->head.dtype), width = bits / 8;
    unsigned char bytes[8];
    if (f->new_count >= NEW_MAX || row->is_written || row->new_end == 0 || width == 0 ||
        width > sizeof bytes || row->new_offset % width != 0 ||
        row->new_end - row->new_begin < width || gbx_entry_is_overwritten(entry) ||
        gbx_entry_stored_bytes(entry) < row->new_offset + width)
        return NULL;
    GBX_TRY(gbx_reader_read_payload(gbx_entries_reader(f->entries),
                                    entry->tensor->bin_offset + row->new_offset, bytes, width));
    for (uint64_t i = 0; i < width; ++i)
        if (!gbx_is_new_memory(bytes, width, i, row->new_begin % 2))
            return NULL;
    gbx_odd_argument odd = about(row, GBX_ODD_UNWRITTEN, row);
    odd.other = odd.other_entry = UINT64_MAX;
    odd.element = row->new_offset / width;
    odd.found = row->new_begin;
    odd.expected = row->new_end;
    ++f->new_count;
    return gbx_odd_add(f->odd, &odd);
}

static gbx_status add_row(flow *f, const gbx_entry *entry) {
    GBX_TRY(gbx_array_reserve(&f->rows, &f->capacity, f->count + 1, doing));
    flow_row *row = &f->rows[f->count++];
    *row = (flow_row){.entry = entry->index,
                      .task = entry->head->task,
                      .elements = gbx_entry_numel(entry),
                      .writer = NO_ROW,
                      .first_reader = NO_ROW,
                      .last_reader = NO_ROW,
                      .above = NO_ROW,
                      .slot = entry->head->arg_index,
                      .role = entry->head->role,
                      .is_written = entry->head->stage == GBX_STAGE_AFTER};
    memcpy(row->func_ids, entry->task->func_ids, sizeof row->func_ids);
    GBX_TRY(follow_row(f, f->count - 1, entry->tensor));
    return look_for_new(f, f->count - 1, entry);
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

/* --- results --- */

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
                f->rows[range.owner].is_result = true;
        }
    }
    return NULL;
}

/* --- one argument of all tasks of a kernel --- */

/* Rows of one argument, in graph order. */
typedef struct siblings {
    uint64_t *rows;
    size_t count;
} siblings;

enum { READS_MAX = 64, LEAST_SIBLINGS = 4 };

/* How often most of them are read, of those that are; 0 if none of them is read. */
static uint64_t usual_reads(const flow *f, const siblings *s) {
    size_t counts[READS_MAX] = {0}, best = 0;
    for (size_t i = 0; i < s->count; ++i)
        if (f->rows[s->rows[i]].reads < READS_MAX && !f->rows[s->rows[i]].is_result)
            ++counts[f->rows[s->rows[i]].reads];
    for (size_t i = 1; i < READS_MAX; ++i)
        if (counts[i] > 0 && (best == 0 || counts[i] > counts[best]))
            best = i;
    return best;
}

/* What is never read is scratch memory, and what is overwritten in most tasks is a habit. */
static gbx_status look_for_lost(flow *f, const siblings *s) {
    size_t lost = 0;
    bool is_read = false;
    for (size_t i = 0; i < s->count; ++i) {
        const flow_row *row = &f->rows[s->rows[i]];
        lost += row->above != NO_ROW;
        is_read |= row->reads > 0 || row->is_result;
    }
    for (size_t i = 0; i < s->count && is_read && lost * 2 <= s->count; ++i) {
        const flow_row *below = &f->rows[s->rows[i]];
        if (below->above == NO_ROW)
            continue;
        const gbx_odd_argument odd = about(&f->rows[below->above], GBX_ODD_LOST_WRITE, below);
        GBX_TRY(gbx_odd_add(f->odd, &odd));
    }
    return NULL;
}

static bool is_unread(const flow_row *row) {
    return row->role == GBX_ROLE_OUTPUT && row->reads == 0 && !row->is_result;
}

/* The sibling nearest in order that is read once more than usual, the last time after `unread` was
 * left; NO_ROW for none. */
static uint64_t find_read_twice(const flow *f, const siblings *s, uint64_t unread, uint64_t usual) {
    uint64_t best = NO_ROW, distance = UINT64_MAX;
    for (size_t i = 0; i < s->count; ++i) {
        const flow_row *row = &f->rows[s->rows[i]];
        uint64_t from = s->rows[i] > unread ? s->rows[i] - unread : unread - s->rows[i];
        if (row->is_result || row->reads != usual + 1 || row->last_reader < unread ||
            from >= distance)
            continue;
        best = s->rows[i];
        distance = from;
    }
    return best;
}

/* Most siblings are read, and this one is not: who should have read it may have read another. Only
 * the first is looked at. */
static gbx_status look_for_unread(flow *f, const siblings *s) {
    const uint64_t usual = usual_reads(f, s);
    uint64_t first = NO_ROW;
    size_t unread = 0;
    for (size_t i = 0; i < s->count && usual > 0; ++i) {
        if (!is_unread(&f->rows[s->rows[i]]))
            continue;
        first = first == NO_ROW ? s->rows[i] : first;
        ++unread;
    }
    uint64_t twice = unread == 1 || (unread > 0 && unread * 2 <= s->count)
                         ? find_read_twice(f, s, first, usual)
                         : NO_ROW;
    if (twice == NO_ROW)
        return NULL;
    const flow_row *row = &f->rows[twice];
    gbx_odd_argument odd = about(&f->rows[row->last_reader], GBX_ODD_READ_TWICE, row);
    odd.unread = f->rows[first].entry;
    odd.reader = f->rows[row->first_reader].entry;
    return gbx_odd_add(f->odd, &odd);
}

/* Whether two inputs come from the same argument of the same kernel, or both from no task. */
static bool is_same_source(const flow *f, uint64_t a, uint64_t b) {
    uint64_t x = f->rows[a].writer, y = f->rows[b].writer;
    return x == NO_ROW || y == NO_ROW ? x == y : is_same_argument(&f->rows[x], &f->rows[y]);
}

/* Whether the task that left `usual` reads what comes from the same argument as `odd`. */
static bool lies_between(const flow *f, uint64_t odd, uint64_t usual) {
    const uint64_t task = f->rows[usual].task;
    for (uint64_t i = usual; i < f->count && f->rows[i].task == task; --i)
        if (!f->rows[i].is_written && f->rows[i].writer != NO_ROW &&
            is_same_argument(&f->rows[f->rows[i].writer], &f->rows[odd]))
            return true;
    return false;
}

/* Whether the tasks that usually leave an input read what `odd` is: one of them may be missing. */
static bool skips_a_task(const flow *f, const siblings *s, uint64_t odd, uint64_t usual) {
    for (size_t i = 0; i < s->count && odd != NO_ROW; ++i)
        if (is_same_source(f, s->rows[i], usual) &&
            lies_between(f, odd, f->rows[s->rows[i]].writer))
            return true;
    return false;
}

/* All inputs but one come from the same kernel, or but a few that miss a task. The first one often
 * begins with something else. */
static gbx_status look_for_source(flow *f, const siblings *s) {
    if (s->count < LEAST_SIBLINGS)
        return NULL;
    uint64_t usual = s->rows[is_same_source(f, s->rows[0], s->rows[1]) ? 0 : 2];
    size_t others = 0, position = 0;
    for (size_t i = 0; i < s->count; ++i)
        if (!is_same_source(f, s->rows[i], usual))
            position = others++ == 0 ? i : position;
    const uint64_t source = f->rows[usual].writer;
    if (others == 0 || position == 0 || source == NO_ROW || others * 8 > s->count + 7)
        return NULL;
    const flow_row *row = &f->rows[s->rows[position]];
    if (others > 1 && !skips_a_task(f, s, row->writer, usual))
        return NULL;
    gbx_odd_argument odd =
        about(row, GBX_ODD_SOURCE, row->writer == NO_ROW ? row : &f->rows[row->writer]);
    if (row->writer == NO_ROW)
        odd.other = odd.other_entry = UINT64_MAX;
    odd.reader = f->rows[source].entry;
    odd.siblings = s->count - others;
    return gbx_odd_add(f->odd, &odd);
}

static int compare_arguments(const flow_row *a, const flow_row *b) {
    int order = a->is_written - b->is_written;
    if (order == 0)
        order = memcmp(a->func_ids, b->func_ids, sizeof a->func_ids);
    return order != 0 ? order : a->slot - b->slot;
}

static int compare_rows(const void *a, const void *b, void *rows) {
    const uint64_t *x = a, *y = b;
    const flow_row *of = rows;
    int order = compare_arguments(&of[*x], &of[*y]);
    return order != 0 ? order : (*x > *y) - (*x < *y);
}

static gbx_status judge_siblings(flow *f, const siblings *s, bool are_results_known) {
    if (!f->rows[s->rows[0]].is_written)
        return look_for_source(f, s);
    GBX_TRY(look_for_lost(f, s));
    return are_results_known ? look_for_unread(f, s) : NULL;
}

static gbx_status judge_arguments(flow *f, bool are_results_known) {
    uint64_t *rows = malloc((f->count + 1) * sizeof *rows);
    gbx_status status = rows ? NULL : gbx_fail_memory("%s", doing);
    for (uint64_t i = 0; i < f->count && rows; ++i)
        rows[i] = i;
    if (rows)
        qsort_r(rows, f->count, sizeof *rows, compare_rows, f->rows);
    for (uint64_t first = 0, end; first < f->count && !status; first = end) {
        for (end = first + 1;
             end < f->count && compare_arguments(&f->rows[rows[first]], &f->rows[rows[end]]) == 0;
             ++end)
            ;
        status = judge_siblings(f, &(const siblings){&rows[first], end - first}, are_results_known);
    }
    free(rows);
    return status;
}

/* --- all of it --- */

static gbx_status follow_all(flow *f, const gbx_task_graph *graph) {
    bool are_results_known;
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &f->map));
    for (uint64_t i = 0; i < gbx_task_graph_count(graph); ++i)
        GBX_TRY(follow_task(f, gbx_task_graph_at(graph, i)->task));
    GBX_TRY(read_results(f, &are_results_known));
    return judge_arguments(f, are_results_known);
}

gbx_status gbx_odd_find_flow(gbx_entries *entries, const gbx_task_graph *graph, gbx_odd *odd) {
    flow f = {.entries = entries, .odd = odd};
    gbx_status status = follow_all(&f, graph);
    gbx_memory_map_destroy(f.map);
    free(f.rows);
    return status;
}
