/*
 * One task of a pass: which of its outputs depend on what it reads, if that is not written, and
 * what it leaves unwritten itself.
 */
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/byte_runs.h"
#include "analysis/new_memory.h"
#include "base/clock.h"
#include "base/memory.h"
#include "diagnose/follow.h"
#include "diagnose/taint.h"

#define GAPS_KEPT (UINT64_C(1) << 22)   /* ranges of all tasks */
#define PAYLOAD_MAX (UINT64_C(1) << 26) /* of an output whose gaps are looked at */

static const char doing[] = GBX_FOLLOWING;

/* --- questions about tasks --- */

/* Whether time has run out: also because calls did not return in time. */
static bool is_over(const gbx_follow *f, gbx_dependence *out_answer) {
    *out_answer =
        (gbx_dependence){.answer = f->has_been_late ? GBX_DEPENDENCE_LATE : GBX_DEPENDENCE_UNKNOWN};
    return gbx_clock_ns() > f->deadline_ns;
}

static gbx_status ask(gbx_follow *f, uint64_t task, uint64_t owners, gbx_dependence *out_answer) {
    if (is_over(f, out_answer))
        return NULL;
    GBX_TRY(gbx_dependence_ask(&f->session, task, f->taint, owners, UINT64_MAX, out_answer));
    f->has_been_late |= out_answer->answer == GBX_DEPENDENCE_LATE;
    return NULL;
}

/* Elements that a task does not write. */
static gbx_status find_gaps(gbx_follow *f, uint64_t task, uint32_t slot, gbx_dependence *out_gaps) {
    if (is_over(f, out_gaps))
        return NULL;
    GBX_TRY(gbx_dependence_find_kept(&f->session, task, slot, out_gaps));
    f->has_been_late |= out_gaps->answer == GBX_DEPENDENCE_LATE;
    return NULL;
}

static gbx_status need_gaps(gbx_follow *f, gbx_follow_part *p) {
    if (p->has_gaps)
        return NULL;
    gbx_dependence_free(&p->gaps);
    GBX_TRY(find_gaps(f, p->task, p->slot, &p->gaps));
    p->has_gaps = f->gaps_kept + p->gaps.kept.count <= GAPS_KEPT;
    f->gaps_kept += p->has_gaps ? p->gaps.kept.count : 0;
    return NULL;
}

static void forget_gaps(gbx_follow_part *p) {
    if (!p->has_gaps)
        gbx_dependence_free(&p->gaps);
}

/* --- one task --- */

typedef struct visit {
    uint64_t task;
    const gbx_check_line *line; /* NULL: it was not asked */
    bool is_unended;            /* it did not complete */
    gbx_follow_part *parts;
    size_t part_count;
    uint64_t reads;                              /* bits */
    gbx_dependence kept;                         /* elements of inouts that hold what they held */
    gbx_dependence depends[GBX_FOLLOW_SETS + 1]; /* on each set */
    uint32_t looked_for;                         /* a set */
} visit;

/* An argument of a task. */
typedef struct place {
    uint32_t slot;
    uint32_t role;    /* gbx_role */
    const char *name; /* the reader's; NULL */
    gbx_tensor view;
    uint64_t payload; /* offset in the payload file */
    uint64_t stored;
} place;

/* Calls `use` with each tensor of a task at a stage. */
static gbx_status for_views(gbx_follow *f, visit *v, uint32_t stage,
                            gbx_status (*use)(gbx_follow *f, visit *v, const place *at)) {
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
                    .name = entry.arg_name,
                    .payload = entry.tensor->bin_offset,
                    .stored =
                        gbx_entry_is_overwritten(&entry) ? 0 : gbx_entry_stored_bytes(&entry)};
        gbx_record_view(entry.tensor, &at.view);
        GBX_TRY(use(f, v, &at));
    }
    return NULL;
}

static gbx_status look_at_input(gbx_follow *f, visit *v, const place *at) {
    v->reads |= gbx_taint_of_view(f->taint, &at->view);
    return NULL;
}

static gbx_status keep_all(gbx_address_ranges *to, const gbx_address_ranges *from) {
    for (size_t i = 0; i < from->count; ++i) {
        GBX_TRY(gbx_array_reserve(&to->items, &to->capacity, to->count + 1, doing));
        to->items[to->count++] = from->items[i];
    }
    return NULL;
}

/* Where an input has a byte that a set left unwritten. */
static gbx_status look_at_use(gbx_follow *f, visit *v, const place *at) {
    gbx_follow_user *user = &f->users[v->looked_for];
    uint64_t wanted = GBX_DIRECT(v->looked_for), bits = gbx_dtype_bits(at->view.dtype);
    gbx_byte_runs runs;
    gbx_byte_run run;
    gbx_memory_range found;
    if (user->is_known || bits == 0 || !(gbx_taint_of_view(f->taint, &at->view) & wanted) ||
        !gbx_taint_can_follow(&at->view))
        return NULL;
    gbx_byte_runs_begin(&at->view, &runs);
    while (!user->is_known && gbx_byte_runs_next(&runs, &run))
        for (uint64_t from = run.begin;
             !user->is_known && gbx_memory_map_find(f->taint, from, &found) &&
             found.begin < run.end;
             from = found.end) {
            uint64_t begin = found.begin > run.begin ? found.begin : run.begin;
            user->is_known = (found.owner & wanted) != 0;
            user->access.element = (run.offset + (begin - run.begin)) * 8 / bits;
        }
    user->access.arg_index = at->slot;
    user->access.role = at->role;
    user->access.name = at->name;
    user->access.tensor = at->view;
    return NULL;
}

static gbx_status keep_user(gbx_follow *f, visit *v, uint32_t number) {
    gbx_record_task record;
    bool is_found;
    if (f->users[number].is_known || !(v->reads & GBX_DIRECT(number)))
        return NULL;
    GBX_TRY(gbx_reader_find_task(f->q->reader, v->task, &record, &is_found));
    if (!is_found)
        return NULL;
    f->users[number].access = (gbx_tensor_access){.task = v->task, .task_id = record.task_id};
    memcpy(f->users[number].access.func_ids, record.func_ids, sizeof record.func_ids);
    v->looked_for = number;
    return for_views(f, v, GBX_STAGE_BEFORE, look_at_use);
}

/* A task that did not complete, or fails whatever it reads, says nothing. */
static void take_answer(gbx_follow *f, uint64_t sets, gbx_dependence_answer answer) {
    if (answer == GBX_DEPENDENCE_LATE)
        f->late |= sets;
    else if (answer == GBX_DEPENDENCE_BROKEN)
        f->unseen |= sets;
    else if (answer == GBX_DEPENDENCE_UNKNOWN)
        gbx_follow_give_up(f, sets);
    else if (answer == GBX_DEPENDENCE_FAILS)
        f->reached |= sets;
}

/* What depends on one set; `all` is what was said of all of them. */
static gbx_status ask_set(gbx_follow *f, visit *v, uint32_t number, bool is_exact,
                          gbx_dependence *all) {
    gbx_dependence *own = &v->depends[number];
    if (!is_exact) {
        own->answer = all->answer;
        GBX_TRY(keep_all(&own->depends, &all->depends));
    } else {
        GBX_TRY(ask(f, v->task, GBX_DIRECT(number) | GBX_COMPUTED(number), own));
    }
    take_answer(f, GBX_DIRECT(number), own->answer);
    if (own->depends.count > 0)
        GBX_TRY(keep_user(f, v, number));
    return is_exact && all->answer == GBX_DEPENDENCE_FAILS ? keep_all(&all->kept, &own->kept)
                                                           : NULL;
}

/* Most tasks depend on none of what they may read: all sets are asked about at once. */
static gbx_status ask_task(gbx_follow *f, visit *v) {
    uint64_t sets = gbx_follow_sets_of(v->reads) & ~f->reached;
    if (sets == 0)
        return NULL;
    GBX_TRY(ask(f, v->task, sets | sets << GBX_COMPUTED_SHIFT, &v->kept));
    if (v->kept.answer == GBX_DEPENDENCE_UNKNOWN || v->kept.answer == GBX_DEPENDENCE_BROKEN)
        take_answer(f, sets, v->kept.answer);
    if (v->kept.answer <= GBX_DEPENDENCE_BROKEN || v->kept.answer == GBX_DEPENDENCE_NONE)
        return NULL;
    for (uint32_t i = 0; i <= GBX_FOLLOW_SETS; ++i)
        if (sets & GBX_DIRECT(i))
            GBX_TRY(ask_set(f, v, i, f->is_exact && sets != GBX_DIRECT(i), &v->kept));
    return NULL;
}

/* --- a task that did not complete --- */

static bool fails_again(const gbx_diagnosis *d, uint64_t task) {
    for (size_t i = 0; i < d->unended_count; ++i)
        if (d->unended[i].task == task)
            return d->unended[i].fault != NULL;
    return false;
}

static gbx_status ask_end(gbx_follow *f, visit *v, uint64_t sets, bool *out_depends) {
    gbx_dependence answer;
    GBX_TRY(gbx_dependence_ask_end(&f->session, v->task, f->taint,
                                   sets | sets << GBX_COMPUTED_SHIFT, &answer));
    *out_depends = answer.answer == GBX_DEPENDENCE_FAILS;
    gbx_dependence_free(&answer);
    return NULL;
}

/* Whether it fails because of what it reads. What else depends on that is not known. */
static gbx_status look_at_end(gbx_follow *f, visit *v) {
    uint64_t sets = gbx_follow_sets_of(v->reads) & f->asked & ~f->reached;
    f->unseen |= sets;
    bool depends = sets != 0 && fails_again(f->q->d, v->task) && gbx_clock_ns() <= f->deadline_ns;
    if (depends)
        GBX_TRY(ask_end(f, v, sets, &depends));
    for (uint32_t i = 0; i < GBX_FOLLOW_SETS && depends; ++i) {
        bool is_it = sets & GBX_DIRECT(i);
        if (is_it && f->is_exact && sets != GBX_DIRECT(i))
            GBX_TRY(ask_end(f, v, GBX_DIRECT(i), &is_it));
        if (!is_it || (f->ending & GBX_DIRECT(i)))
            continue;
        f->ending |= GBX_DIRECT(i);
        f->ended[i] = v->task;
        GBX_TRY(keep_user(f, v, i));
    }
    return NULL;
}

/* --- what it leaves --- */

static gbx_follow_part *find_part(const visit *v, uint32_t slot) {
    for (size_t i = 0; i < v->part_count; ++i)
        if (v->parts[i].slot == slot)
            return &v->parts[i];
    return NULL;
}

/* Whether every unwritten element of its outputs is known to be one. */
static bool is_known(const gbx_follow *f, const visit *v) {
    if (!v->line || !v->line->kernels.is_called || v->line->kernels.verdict == GBX_REPLAY_FAULT)
        return false;
    int64_t result = v->line->kernels.result;
    return result < 0 || f->q->d->check.results[result].notes_left_out == 0;
}

/* An output with gaps keeps them; an inout keeps what its task does not write. */
static gbx_status leave(gbx_follow *f, const visit *v, const gbx_tensor *view,
                        const gbx_address_ranges *gaps) {
    GBX_TRY(gbx_taint_write(f->written, view, 1, gaps));
    return gbx_taint_write(f->taint, view, 0, gaps ? gaps : &v->kept.kept);
}

/* What an inout keeps of memory that nobody wrote is not written yet. */
static gbx_status leave_inout(gbx_follow *f, visit *v, const place *at) {
    gbx_dependence asked = {0};
    gbx_status status = NULL;
    bool is_written = gbx_taint_has_all(f->written, &at->view);
    if (!is_written)
        status = find_gaps(f, v->task, at->slot, &asked);
    if (!status && (is_written || gbx_dependence_is_known(&asked)))
        status = gbx_taint_write(f->written, &at->view, 1, &asked.kept);
    if (!status)
        status = gbx_taint_write(f->taint, &at->view, 0, &v->kept.kept);
    gbx_dependence_free(&asked);
    return status;
}

/* Without an answer, what the output held stays. */
static gbx_status leave_output(gbx_follow *f, visit *v, const place *at) {
    if (at->role == GBX_ROLE_INOUT)
        return leave_inout(f, v, at);
    gbx_follow_part *p = find_part(v, at->slot);
    gbx_dependence asked = {0};
    bool is_needed = p || (!is_known(f, v) && gbx_taint_of_view(f->taint, &at->view) != 0);
    if (!is_needed)
        return leave(f, v, &at->view, NULL);
    gbx_status status = p ? need_gaps(f, p) : find_gaps(f, v->task, at->slot, &asked);
    const gbx_dependence *gaps = p ? &p->gaps : &asked;
    if (!status && gbx_dependence_is_known(gaps))
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
static gbx_status add_new_memory(gbx_follow *f, const gap_piece *p, uint64_t from, uint64_t end,
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
static gbx_status add_gap(gbx_follow *f, const gap_piece *p, uint64_t bits) {
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
static gbx_status read_left(const gbx_follow *f, const place *at, unsigned char **out_bytes) {
    uint64_t bytes = gbx_tensor_payload_bytes(&at->view);
    *out_bytes = NULL;
    if (bytes == 0 || at->stored != bytes || bytes > PAYLOAD_MAX)
        return NULL;
    if (!(*out_bytes = malloc(bytes)))
        return gbx_fail_memory("%s", doing);
    return gbx_reader_read_payload(f->q->reader, at->payload, *out_bytes, bytes);
}

/* Gaps come in the order of the view's runs; one may go on in the next run. */
static gbx_status add_gaps(gbx_follow *f, const place *at, const gbx_address_ranges *gaps,
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

static gbx_status begin_source(gbx_follow *f, visit *v, const place *at) {
    gbx_follow_part *p = find_part(v, at->slot);
    if (!p || !p->is_source)
        return NULL;
    GBX_TRY(need_gaps(f, p));
    p->has_begun = p->gaps.answer == GBX_DEPENDENCE_SOME && gbx_taint_can_follow(&at->view);
    return p->has_begun ? add_gaps(f, at, &p->gaps.kept, GBX_DIRECT(p->set)) : NULL;
}

/* A source whose output has no record, or whose gaps are unknown, cannot be followed. */
static void end_sources(gbx_follow *f, const visit *v) {
    for (size_t i = 0; i < v->part_count; ++i) {
        const gbx_follow_part *p = &v->parts[i];
        if (p->set != GBX_FOLLOW_NO_SET && !p->has_begun)
            take_answer(f, GBX_DIRECT(p->set),
                        p->gaps.answer == GBX_DEPENDENCE_LATE ? GBX_DEPENDENCE_LATE
                                                              : GBX_DEPENDENCE_UNKNOWN);
        v->parts[i].has_begun = false;
    }
}

static gbx_status leave_dependent(gbx_follow *f, const visit *v) {
    for (uint32_t i = 0; i <= GBX_FOLLOW_SETS; ++i)
        for (size_t k = 0; k < v->depends[i].depends.count; ++k) {
            const gbx_address_range *range = &v->depends[i].depends.items[k];
            GBX_TRY(gbx_taint_add(f->taint, range->begin, range->end, GBX_COMPUTED(i)));
        }
    return NULL;
}

static gbx_status visit_task(gbx_follow *f, visit *v) {
    GBX_TRY(for_views(f, v, GBX_STAGE_BEFORE, look_at_input));
    if (v->is_unended)
        return look_at_end(f, v);
    GBX_TRY(ask_task(f, v));
    GBX_TRY(for_views(f, v, GBX_STAGE_AFTER, begin_source));
    end_sources(f, v);
    GBX_TRY(for_views(f, v, GBX_STAGE_AFTER, leave_output));
    return leave_dependent(f, v);
}

static void free_visit(visit *v) {
    for (uint32_t i = 0; i <= GBX_FOLLOW_SETS; ++i)
        gbx_dependence_free(&v->depends[i]);
    gbx_dependence_free(&v->kept);
    for (size_t i = 0; i < v->part_count; ++i)
        forget_gaps(&v->parts[i]);
}

gbx_status gbx_follow_task(gbx_follow *f, const gbx_graph_task *task, const gbx_check_line *line,
                           gbx_follow_part *parts, size_t part_count) {
    visit v = {.task = task->task,
               .line = line,
               .parts = parts,
               .part_count = part_count,
               .is_unended = f->has_failed && task->end_ns == UINT64_MAX};
    gbx_status status = visit_task(f, &v);
    free_visit(&v);
    return status;
}
