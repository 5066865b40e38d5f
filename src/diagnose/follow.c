/*
 * Does it matter that a task left elements of an output unwritten? A view says only that a task may
 * read them: a kernel that is given a padded tile need not look at the padding. So values are
 * followed through the graph, with kernels called again on changed inputs: from the elements that
 * nobody wrote, over outputs that depend on them, to the results of the run.
 *
 * Many tasks are followed at a time: those of one kernel and argument first as one set, which is
 * divided only if anything reaches a result. Whatever cannot be followed counts as reaching one.
 *
 * What somebody wrote there before is no garbage: tasks may share a buffer, each with rows of its
 * own. But it may be stale: if a result is wrong, those whose unwritten elements reach its first
 * wrong element, garbage or not, are suspects where nothing else is found. Without a golden all of
 * it counts as garbage.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/byte_runs.h"
#include "analysis/new_memory.h"
#include "base/clock.h"
#include "base/memory.h"
#include "diagnose/internal.h"
#include "diagnose/taint.h"

enum {
    SETS = 31,    /* that are followed in one pass over the graph */
    PARTS = 4,    /* that a set is divided into */
    PASSES = 16,  /* sets that are not followed then count as reaching a result */
    NO_SET = SETS /* its bits are those of all other sources: they may hide what is asked */
};
#define FOLLOW_NS (60 * GBX_NS_PER_SECOND) /* likewise; each of the two rounds */
#define GAPS_KEPT (UINT64_C(1) << 22)      /* ranges of all tasks */
#define PAYLOAD_MAX (UINT64_C(1) << 26)    /* of an output whose gaps are looked at */

static const char doing[] = "following unwritten elements";

/* In the map: what nobody wrote, and what was computed from it. */
#define DIRECT(set) (UINT64_C(1) << (set))
#define COMPUTED(set) (DIRECT(set) << HALF)
#define HALF 32
#define LOW UINT64_C(0xffffffff)

/* An output of which a task leaves elements as they were; in order of tasks. */
typedef struct part {
    uint64_t task;
    const uint32_t *func_ids;
    uint32_t slot;
    uint32_t set;    /* in this pass; NO_SET */
    uint64_t result; /* of the check, with this finding: a source; or a note */
    uint32_t item;
    bool is_source;
    bool is_harmless; /* changes no result */
    bool is_far;      /* does not reach the first wrong element, not even as stale values */
    bool has_begun;   /* in this pass: the view of the output is known */
    bool has_gaps;    /* were asked for, and are kept */
    gbx_dependence gaps;
} part;

/* Sources from `first` on in f->sources. */
typedef struct set {
    size_t first;
    size_t count;
    bool is_exact; /* is followed by itself; else what depends on any set that a task reads counts
                      as depending on all of them, which takes one question */
} set;

typedef struct follow {
    gbx_inquiry *q;
    gbx_entries *entries;
    gbx_replay_session session;
    part *parts;
    size_t part_count;
    uint64_t part_capacity;
    part **sources; /* by kernel and slot */
    size_t source_count;
    set *queue;
    size_t queue_count;
    uint64_t queue_capacity;
    gbx_memory_map *taint;
    gbx_memory_map *written; /* owner 1: by a task */
    bool is_exact;           /* this pass, see set */
    uint64_t asked;          /* sets in this pass, as in DIRECT */
    uint64_t reached;        /* a result; likewise */
    int64_t deadline_ns;
    uint64_t gaps_kept;
    bool has_golden; /* of the run; and */
    bool has_passed; /* it is satisfied */
    bool is_second;  /* asks for suspects among harmless sources */
} follow;

/* --- parts --- */

static gbx_status add_part(follow *f, const gbx_check_line *line, uint64_t result, uint32_t item) {
    const gbx_replay_finding *finding = &f->q->d->check.results[result].findings[item];
    bool is_source = finding->is.kind == GBX_UNWRITTEN_READ;
    if (!is_source && finding->is.kind != GBX_UNWRITTEN)
        return NULL;
    GBX_TRY(gbx_array_reserve(&f->parts, &f->part_capacity, f->part_count + 1, doing));
    f->parts[f->part_count++] = (part){.task = line->task,
                                       .func_ids = line->func_ids,
                                       .slot = finding->slot,
                                       .set = NO_SET,
                                       .result = result,
                                       .item = item,
                                       .is_source = is_source};
    f->source_count += is_source;
    return NULL;
}

static gbx_status gather_parts(follow *f) {
    const gbx_check_report *check = &f->q->d->check;
    for (uint64_t i = 0; i < check->count; ++i) {
        int64_t result = check->lines[i].kernels.result;
        for (uint32_t k = 0; result >= 0 && k < check->results[result].finding_count; ++k)
            GBX_TRY(add_part(f, &check->lines[i], (uint64_t)result, k));
    }
    return NULL;
}

static int compare_kernels(const part *a, const part *b) {
    int order = memcmp(a->func_ids, b->func_ids, GBX_SUBTASK_COUNT * sizeof *a->func_ids);
    return order != 0 ? order : (a->slot > b->slot) - (a->slot < b->slot);
}

static int compare_sources(const void *a, const void *b) {
    const part *x = *(part *const *)a, *y = *(part *const *)b;
    int order = compare_kernels(x, y);
    return order != 0 ? order : (x > y) - (x < y);
}

static gbx_status add_set(follow *f, size_t first, size_t count, bool is_exact) {
    GBX_TRY(gbx_array_reserve(&f->queue, &f->queue_capacity, f->queue_count + 1, doing));
    f->queue[f->queue_count++] = (set){first, count, is_exact};
    return NULL;
}

/* One set for each kernel and slot. */
static gbx_status make_sets(follow *f) {
    f->source_count = 0;
    f->queue_count = 0;
    for (size_t i = 0; i < f->part_count; ++i)
        if (f->parts[i].is_source && (!f->is_second || f->parts[i].is_harmless))
            f->sources[f->source_count++] = &f->parts[i];
    qsort(f->sources, f->source_count, sizeof *f->sources, compare_sources);
    for (size_t first = 0, end; first < f->source_count; first = end) {
        for (end = first + 1;
             end < f->source_count && compare_kernels(f->sources[first], f->sources[end]) == 0;
             ++end)
            ;
        GBX_TRY(add_set(f, first, end - first, false));
    }
    return NULL;
}

/* --- questions about tasks --- */

static gbx_status ask(follow *f, uint64_t task, uint64_t owners, gbx_dependence *out_answer) {
    *out_answer = (gbx_dependence){.answer = GBX_DEPENDENCE_UNKNOWN};
    if (gbx_clock_ns() > f->deadline_ns)
        return NULL;
    return gbx_dependence_ask(&f->session, task, f->taint, owners, UINT64_MAX, out_answer);
}

/* Elements that a task does not write. */
static gbx_status find_gaps(follow *f, uint64_t task, uint32_t slot, gbx_dependence *out_gaps) {
    *out_gaps = (gbx_dependence){.answer = GBX_DEPENDENCE_UNKNOWN};
    if (gbx_clock_ns() > f->deadline_ns)
        return NULL;
    return gbx_dependence_find_kept(&f->session, task, slot, out_gaps);
}

static gbx_status need_gaps(follow *f, part *p) {
    if (p->has_gaps)
        return NULL;
    gbx_dependence_free(&p->gaps);
    GBX_TRY(find_gaps(f, p->task, p->slot, &p->gaps));
    p->has_gaps = f->gaps_kept + p->gaps.kept.count <= GAPS_KEPT;
    f->gaps_kept += p->has_gaps ? p->gaps.kept.count : 0;
    return NULL;
}

static void forget_gaps(part *p) {
    if (!p->has_gaps)
        gbx_dependence_free(&p->gaps);
}

static bool are_gaps_known(const gbx_dependence *gaps) {
    return gaps->answer == GBX_DEPENDENCE_SOME || gaps->answer == GBX_DEPENDENCE_NONE;
}

/* --- one task --- */

typedef struct visit {
    uint64_t task;
    const gbx_check_line *line; /* NULL: it was not asked */
    part *parts;
    size_t part_count;
    uint64_t reads;                    /* bits */
    gbx_dependence kept;               /* elements of inouts that hold what they held */
    gbx_dependence *depends[SETS + 1]; /* on each set */
} visit;

/* An argument of a task. */
typedef struct place {
    uint32_t slot;
    uint32_t role; /* gbx_role */
    gbx_tensor view;
    uint64_t payload; /* offset in the payload file */
    uint64_t stored;
} place;

/* Calls `use` with each tensor of a task at a stage. */
static gbx_status for_views(follow *f, visit *v, uint32_t stage,
                            gbx_status (*use)(follow *f, visit *v, const place *at)) {
    gbx_entry entry;
    for (uint64_t i = gbx_entries_find(f->entries, v->task); i < gbx_entries_count(f->entries);
         ++i) {
        GBX_TRY(gbx_entries_at(f->entries, i, &entry));
        if (entry.head->task != v->task)
            return NULL;
        if (!entry.tensor || entry.head->stage != stage)
            continue;
        place at = {.slot = entry.head->arg_index,
                    .role = entry.head->role,
                    .payload = entry.tensor->bin_offset,
                    .stored =
                        gbx_entry_is_overwritten(&entry) ? 0 : gbx_entry_stored_bytes(&entry)};
        gbx_record_view(entry.tensor, &at.view);
        GBX_TRY(use(f, v, &at));
    }
    return NULL;
}

static gbx_status look_at_input(follow *f, visit *v, const place *at) {
    v->reads |= gbx_taint_of_view(f->taint, &at->view);
    return NULL;
}

static uint64_t sets_of(uint64_t bits) {
    return (bits | bits >> HALF) & LOW;
}

static bool is_answered(const gbx_dependence *answer) {
    return answer->answer == GBX_DEPENDENCE_SOME || answer->answer == GBX_DEPENDENCE_NONE;
}

static gbx_status keep_all(gbx_address_ranges *to, const gbx_address_ranges *from) {
    for (size_t i = 0; i < from->count; ++i) {
        GBX_TRY(gbx_array_reserve(&to->items, &to->capacity, to->count + 1, doing));
        to->items[to->count++] = from->items[i];
    }
    return NULL;
}

/* What depends on one set; `all` is what was said of all of them. */
static gbx_status ask_set(follow *f, visit *v, uint32_t number, bool is_exact,
                          gbx_dependence *all) {
    gbx_dependence *own = v->depends[number] = calloc(1, sizeof *own);
    if (!own)
        return gbx_fail_memory("%s", doing);
    if (!is_exact) {
        own->answer = all->answer;
        GBX_TRY(keep_all(&own->depends, &all->depends));
    } else {
        GBX_TRY(ask(f, v->task, DIRECT(number) | COMPUTED(number), own));
    }
    if (!is_answered(own))
        f->reached |= DIRECT(number);
    return is_exact && all->answer == GBX_DEPENDENCE_FAILS ? keep_all(&all->kept, &own->kept)
                                                           : NULL;
}

/* Most tasks depend on none of what they may read: all sets are asked about at once. */
static gbx_status ask_task(follow *f, visit *v) {
    uint64_t sets = sets_of(v->reads) & ~f->reached;
    if (sets == 0)
        return NULL;
    GBX_TRY(ask(f, v->task, sets | sets << HALF, &v->kept));
    if (v->kept.answer == GBX_DEPENDENCE_UNKNOWN)
        f->reached |= sets;
    if (v->kept.answer == GBX_DEPENDENCE_UNKNOWN || v->kept.answer == GBX_DEPENDENCE_NONE)
        return NULL;
    for (uint32_t i = 0; i <= SETS; ++i)
        if (sets & DIRECT(i))
            GBX_TRY(ask_set(f, v, i, f->is_exact && sets != DIRECT(i), &v->kept));
    return NULL;
}

/* --- what it leaves --- */

static part *find_part(const visit *v, uint32_t slot) {
    for (size_t i = 0; i < v->part_count; ++i)
        if (v->parts[i].slot == slot)
            return &v->parts[i];
    return NULL;
}

/* Whether every unwritten element of its outputs is known to be one. */
static bool is_known(const follow *f, const visit *v) {
    if (!v->line || !v->line->kernels.is_called || v->line->kernels.verdict == GBX_REPLAY_FAULT)
        return false;
    int64_t result = v->line->kernels.result;
    return result < 0 || f->q->d->check.results[result].notes_left_out == 0;
}

/* An output with gaps keeps them; an inout keeps what its task does not write. */
static gbx_status leave(follow *f, const visit *v, const gbx_tensor *view,
                        const gbx_address_ranges *gaps) {
    GBX_TRY(gbx_taint_write(f->written, view, 1, gaps));
    return gbx_taint_write(f->taint, view, 0, gaps ? gaps : &v->kept.kept);
}

/* What an inout keeps of memory that nobody wrote is not written yet. */
static gbx_status leave_inout(follow *f, visit *v, const place *at) {
    gbx_dependence asked = {0};
    gbx_status status = NULL;
    bool is_written = gbx_taint_has_all(f->written, &at->view);
    if (!is_written)
        status = find_gaps(f, v->task, at->slot, &asked);
    if (!status && (is_written || are_gaps_known(&asked)))
        status = gbx_taint_write(f->written, &at->view, 1, &asked.kept);
    if (!status)
        status = gbx_taint_write(f->taint, &at->view, 0, &v->kept.kept);
    gbx_dependence_free(&asked);
    return status;
}

/* Without an answer, what the output held stays. */
static gbx_status leave_output(follow *f, visit *v, const place *at) {
    if (at->role == GBX_ROLE_INOUT)
        return leave_inout(f, v, at);
    part *p = find_part(v, at->slot);
    gbx_dependence asked = {0};
    bool is_needed = p || (!is_known(f, v) && gbx_taint_of_view(f->taint, &at->view) != 0);
    if (!is_needed)
        return leave(f, v, &at->view, NULL);
    gbx_status status = p ? need_gaps(f, p) : find_gaps(f, v->task, at->slot, &asked);
    const gbx_dependence *gaps = p ? &p->gaps : &asked;
    if (!status && are_gaps_known(gaps))
        status = leave(f, v, &at->view, gaps->kept.count > 0 ? &gaps->kept : NULL);
    gbx_dependence_free(&asked);
    return status;
}

/* --- gaps --- */

/* A piece of a gap, and what the task left there; NULL: unknown. */
typedef struct gap_piece {
    uint64_t begin;
    uint64_t end;
    uint64_t base; /* of the buffer */
    const unsigned char *bytes;
} gap_piece;

/* Whether somebody wrote the byte that is not said to have: the host, perhaps. */
static bool has_value(const gap_piece *p, uint64_t at) {
    return p->bytes && !gbx_is_new_memory(p->bytes, (size_t)(p->end - p->begin),
                                          (size_t)(at - p->begin), p->begin - p->base);
}

/* Adds those bytes of [from, end) that hold what new memory holds. */
static gbx_status add_new_memory(follow *f, const gap_piece *p, uint64_t from, uint64_t end,
                                 uint64_t bits) {
    for (uint64_t at = from, next; at < end; at = next) {
        bool is_written = f->has_golden && !f->is_second && has_value(p, at);
        for (next = at + 1; next < end; ++next)
            if ((f->has_golden && !f->is_second && has_value(p, next)) != is_written)
                break;
        if (!is_written)
            GBX_TRY(gbx_taint_add(f->taint, at, next, bits));
    }
    return NULL;
}

/* Bytes that were written before are no garbage if a golden says whether they matter. */
static gbx_status add_gap(follow *f, const gap_piece *p, uint64_t bits) {
    gbx_memory_range found;
    for (uint64_t at = p->begin, next; at < p->end; at = next) {
        bool is_there = gbx_memory_map_find(f->written, at, &found) && found.begin < p->end;
        next = !is_there ? p->end : found.begin > at ? found.begin : found.end;
        next = next < p->end ? next : p->end;
        bool is_written =
            is_there && found.begin <= at && found.owner != 0 && f->has_golden && !f->is_second;
        if (!is_written)
            GBX_TRY(add_new_memory(f, p, at, next, bits));
    }
    return NULL;
}

/* What the dump has of an output; NULL if that is not all. The caller frees it. */
static gbx_status read_left(const follow *f, const place *at, unsigned char **out_bytes) {
    uint64_t bytes = gbx_tensor_payload_bytes(&at->view);
    *out_bytes = NULL;
    if (bytes == 0 || at->stored != bytes || bytes > PAYLOAD_MAX)
        return NULL;
    if (!(*out_bytes = malloc(bytes)))
        return gbx_fail_memory("%s", doing);
    return gbx_reader_read_payload(f->q->reader, at->payload, *out_bytes, bytes);
}

/* Gaps come in the order of the view's runs; one may go on in the next run. */
static gbx_status add_gaps(follow *f, const place *at, const gbx_address_ranges *gaps,
                           uint64_t bits) {
    gbx_byte_runs runs;
    gbx_byte_run run;
    unsigned char *left;
    gbx_status status = read_left(f, at, &left);
    size_t next = 0;
    gbx_byte_runs_begin(&at->view, &runs);
    while (!status && next < gaps->count && gbx_byte_runs_next(&runs, &run))
        while (!status && next < gaps->count && gaps->items[next].begin < run.end &&
               gaps->items[next].end > run.begin) {
            const gbx_address_range *gap = &gaps->items[next];
            uint64_t begin = gap->begin > run.begin ? gap->begin : run.begin;
            uint64_t end = gap->end < run.end ? gap->end : run.end;
            status =
                add_gap(f,
                        &(const gap_piece){begin, end, at->view.data,
                                           left ? left + run.offset + (begin - run.begin) : NULL},
                        bits);
            if (gap->end > run.end)
                break;
            ++next;
        }
    free(left);
    return status;
}

static gbx_status begin_source(follow *f, visit *v, const place *at) {
    part *p = find_part(v, at->slot);
    if (!p || !p->is_source)
        return NULL;
    GBX_TRY(need_gaps(f, p));
    p->has_begun = p->gaps.answer == GBX_DEPENDENCE_SOME && gbx_taint_can_follow(&at->view);
    return p->has_begun ? add_gaps(f, at, &p->gaps.kept, DIRECT(p->set)) : NULL;
}

/* A source whose output has no record, or whose gaps are unknown, cannot be followed. */
static void end_sources(follow *f, const visit *v) {
    for (size_t i = 0; i < v->part_count; ++i) {
        if (v->parts[i].set != NO_SET && !v->parts[i].has_begun)
            f->reached |= DIRECT(v->parts[i].set);
        v->parts[i].has_begun = false;
    }
}

static gbx_status leave_dependent(follow *f, const visit *v) {
    for (uint32_t i = 0; i <= SETS; ++i)
        for (size_t k = 0; v->depends[i] && k < v->depends[i]->depends.count; ++k) {
            const gbx_address_range *range = &v->depends[i]->depends.items[k];
            GBX_TRY(gbx_taint_add(f->taint, range->begin, range->end, COMPUTED(i)));
        }
    return NULL;
}

static gbx_status follow_task(follow *f, visit *v) {
    GBX_TRY(for_views(f, v, GBX_STAGE_BEFORE, look_at_input));
    GBX_TRY(ask_task(f, v));
    GBX_TRY(for_views(f, v, GBX_STAGE_AFTER, begin_source));
    end_sources(f, v);
    GBX_TRY(for_views(f, v, GBX_STAGE_AFTER, leave_output));
    return leave_dependent(f, v);
}

static void free_visit(visit *v) {
    for (uint32_t i = 0; i <= SETS; ++i) {
        if (v->depends[i])
            gbx_dependence_free(v->depends[i]);
        free(v->depends[i]);
    }
    gbx_dependence_free(&v->kept);
    for (size_t i = 0; i < v->part_count; ++i)
        forget_gaps(&v->parts[i]);
}

/* --- results --- */

/* Whether all are NaN: a golden that accepts one does not look at the element. */
static gbx_status are_nan(const follow *f, const gbx_record_tensor *record, uint64_t offset,
                          uint64_t bytes, bool *out_are) {
    uint32_t dtype = record->head.dtype;
    uint64_t width = gbx_dtype_bits(dtype) / 8;
    *out_are = gbx_dtype_is_float(dtype) && width > 0 && bytes % width == 0 &&
               offset <= record->bin_size && bytes <= record->bin_size - offset;
    for (uint64_t at = 0; at < bytes && *out_are; at += width) {
        uint64_t bits = 0;
        GBX_TRY(
            gbx_reader_read_payload(f->q->reader, record->bin_offset + offset + at, &bits, width));
        *out_are = isnan(gbx_dtype_to_f64(dtype, bits));
    }
    return NULL;
}

static gbx_status look_at_piece(follow *f, const gbx_record_tensor *record,
                                const gbx_record_piece *piece) {
    uint64_t end = piece->address + piece->bytes;
    gbx_memory_range found;
    for (uint64_t at = piece->address;
         at < end && gbx_memory_map_find(f->taint, at, &found) && found.begin < end;
         at = found.end) {
        uint64_t begin = found.begin > at ? found.begin : at;
        uint64_t stop = found.end < end ? found.end : end;
        uint64_t computed = found.owner >> HALF & ~f->reached;
        bool is_accepted = false;
        if (!f->has_passed)
            f->reached |= found.owner & LOW;
        if (computed != 0 && f->has_passed)
            GBX_TRY(are_nan(f, record, piece->offset + (begin - piece->address), stop - begin,
                            &is_accepted));
        if (!is_accepted)
            f->reached |= computed;
    }
    return NULL;
}

static gbx_status look_at_result(follow *f, uint64_t position) {
    gbx_result result;
    GBX_TRY(gbx_reader_result(f->q->reader, position, &result));
    gbx_record_tensor record = *result.record;
    uint64_t count = result.piece_count;
    gbx_record_piece *pieces = malloc((count + 1) * sizeof *pieces);
    if (!pieces)
        return gbx_fail_memory("%s", doing);
    if (count > 0)
        memcpy(pieces, result.pieces, count * sizeof *pieces);
    gbx_status status = NULL;
    for (uint64_t i = 0; i < count && !status; ++i)
        status = look_at_piece(f, &record, &pieces[i]);
    free(pieces);
    return status;
}

/* Whether the dump knows where all results of the run lie. */
static gbx_status has_results(const follow *f, bool *out_has) {
    uint64_t count = gbx_reader_result_count(f->q->reader);
    *out_has = count > 0 && gbx_reader_has_ended_well(f->q->reader);
    for (uint64_t i = 0; i < count && *out_has; ++i) {
        gbx_result result;
        GBX_TRY(gbx_reader_result(f->q->reader, i, &result));
        *out_has = result.piece_count > 0;
    }
    return NULL;
}

static gbx_status look_at_results(follow *f) {
    const gbx_blame_element *wrong = &f->q->d->blamed;
    bool is_known;
    gbx_memory_range found;
    if (f->is_second) {
        uint64_t bytes = (gbx_dtype_bits(wrong->tensor.dtype) + 7) / 8;
        f->reached |= sets_of(gbx_taint_of_range(f->taint, wrong->address, wrong->address + bytes));
        return NULL;
    }
    GBX_TRY(has_results(f, &is_known));
    for (uint64_t i = 0; is_known && i < gbx_reader_result_count(f->q->reader); ++i)
        GBX_TRY(look_at_result(f, i));
    for (uint64_t at = 0; !is_known && gbx_memory_map_find(f->taint, at, &found); at = found.end)
        f->reached |= found.owner >> HALF; /* it may be a result */
    return NULL;
}

/* --- a pass over the graph --- */

static gbx_status follow_graph(follow *f) {
    const gbx_check_report *check = &f->q->d->check;
    uint64_t line = 0;
    size_t next = 0;
    for (uint64_t i = 0; i < gbx_task_graph_count(f->q->graph) && f->asked & ~f->reached; ++i) {
        visit v = {.task = gbx_task_graph_at(f->q->graph, i)->task, .parts = &f->parts[next]};
        if (line < check->count && check->lines[line].task == v.task)
            v.line = &check->lines[line++];
        while (next < f->part_count && f->parts[next].task == v.task) {
            ++next;
            ++v.part_count;
        }
        gbx_status status = follow_task(f, &v);
        free_visit(&v);
        GBX_TRY(status);
    }
    return look_at_results(f);
}

static void mark(follow *f, const set *sets, size_t count, bool is_begin) {
    for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < sets[i].count; ++k)
            f->sources[sets[i].first + k]->set = is_begin ? (uint32_t)i : NO_SET;
}

/* Memory that is cut into too many ranges cannot be followed. */
static gbx_status pass(follow *f, const set *sets, size_t count) {
    gbx_memory_map_clear(f->taint);
    gbx_memory_map_clear(f->written);
    f->asked = DIRECT(count) - 1;
    f->reached = 0;
    mark(f, sets, count, true);
    gbx_status status = follow_graph(f);
    mark(f, sets, count, false);
    if (gbx_status_code(status) != GBX_EXHAUSTED)
        return status;
    gbx_status_free(status);
    f->reached = LOW;
    return NULL;
}

static void acquit(follow *f, const set *done) {
    for (size_t i = 0; i < done->count; ++i) {
        part *p = f->sources[done->first + i];
        *(f->is_second ? &p->is_far : &p->is_harmless) = true;
    }
}

static gbx_status divide(follow *f, set reaching) {
    size_t step = (reaching.count + PARTS - 1) / PARTS;
    if (!reaching.is_exact)
        return add_set(f, reaching.first, reaching.count, true);
    for (size_t at = 0; at < reaching.count && reaching.count > 1; at += step) {
        size_t rest = reaching.count - at;
        GBX_TRY(add_set(f, reaching.first + at, rest < step ? rest : step, true));
    }
    return NULL;
}

/* The next sets that are followed alike. */
static size_t take_sets(const follow *f, size_t first, set sets[SETS]) {
    size_t count = 0;
    for (; count < SETS && first + count < f->queue_count; ++count) {
        if (f->queue[first + count].is_exact != f->is_exact)
            break;
        sets[count] = f->queue[first + count];
    }
    return count;
}

static gbx_status follow_sets(follow *f) {
    for (size_t first = 0, passes = 0; first < f->queue_count && passes < PASSES; ++passes) {
        set sets[SETS];
        f->is_exact = f->queue[first].is_exact;
        size_t count = take_sets(f, first, sets);
        first += count;
        GBX_TRY(pass(f, sets, count));
        for (size_t i = 0; i < count; ++i) {
            if (f->reached & DIRECT(i))
                GBX_TRY(divide(f, sets[i]));
            else
                acquit(f, &sets[i]);
        }
    }
    return NULL;
}

/* --- clues --- */

static const part *find_clue(const follow *f, const gbx_clue *clue) {
    size_t low = 0, high = f->part_count;
    if (clue->source != GBX_CLUE_REPLAY || clue->kind != GBX_DIAGNOSIS_UNWRITTEN_READ)
        return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const part *p = &f->parts[middle];
        if (p->result < clue->index || (p->result == clue->index && p->item < clue->item))
            low = middle + 1;
        else
            high = middle;
    }
    bool is_found = low < f->part_count && f->parts[low].result == clue->index &&
                    f->parts[low].item == clue->item;
    return is_found ? &f->parts[low] : NULL;
}

static gbx_status report_dropped(gbx_inquiry *q, size_t dropped) {
    q->d->asked[GBX_ASKED_REPLAY].findings -= dropped;
    if (dropped == 0)
        return NULL;
    return gbx_inquiry_note_harmless(
        q, GBX_ASKED_REPLAY,
        "%zu %s not completely written, and what nobody wrote changes no result", dropped,
        dropped == 1 ? "output is" : "outputs are");
}

/* If a result is wrong, suspects are worth a word where nothing else is found. */
static gbx_status drop_clues(follow *f) {
    gbx_inquiry *q = f->q;
    size_t kept = 0, dropped = 0;
    for (size_t i = 0; i < q->clue_count; ++i) {
        gbx_clue clue = q->clues[i];
        const part *p = find_clue(f, &clue);
        bool is_harmless = p && p->is_harmless, is_suspect = q->d->golden && !(p && p->is_far);
        if (is_harmless)
            clue.kind = GBX_DIAGNOSIS_UNWRITTEN;
        if (!is_harmless || is_suspect)
            q->clues[kept++] = clue;
        else
            ++dropped;
    }
    q->clue_count = kept;
    return report_dropped(q, dropped);
}

/* All sources that may be harmless, or suspects. */
static gbx_status follow_round(follow *f) {
    f->deadline_ns = gbx_clock_ns() + FOLLOW_NS;
    GBX_TRY(make_sets(f));
    return follow_sets(f);
}

static gbx_status follow_all(follow *f) {
    GBX_TRY(gather_parts(f));
    if (f->source_count == 0)
        return NULL;
    f->sources = calloc(f->source_count, sizeof *f->sources);
    if (!f->sources)
        return gbx_fail_memory("%s", doing);
    GBX_TRY(gbx_inquiry_open_session(f->q, &f->session));
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &f->taint));
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &f->written));
    GBX_TRY(follow_round(f));
    f->is_second = true;
    if (f->q->d->golden && f->q->d->blamed.is_placed)
        GBX_TRY(follow_round(f));
    return drop_clues(f);
}

gbx_status gbx_inquiry_follow(gbx_inquiry *q) {
    const gbx_diagnosis *d = q->d;
    follow f = {
        .q = q, .entries = q->request->entries, .has_golden = d->asked[GBX_ASKED_GOLDEN].tasks > 0};
    f.has_passed = f.has_golden && !d->golden;
    gbx_status status = follow_all(&f);
    gbx_replay_session_close(&f.session);
    gbx_memory_map_destroy(f.taint);
    gbx_memory_map_destroy(f.written);
    for (size_t i = 0; i < f.part_count; ++i)
        gbx_dependence_free(&f.parts[i].gaps);
    free(f.parts);
    free(f.sources);
    free(f.queue);
    return status;
}
