/*
 * Do tasks without order really share memory? An audit knows what they declare: whole buffers,
 * perhaps, of which each writes its own rows. Kernels are called again to see which bytes they
 * write, and whether what they leave depends on bytes that a task without order writes. A buffer of
 * which nobody does is *apart*, whatever its tasks declare. Of any other those pairs are findings
 * that share a byte. An audit does not list every pair: what it leaves out is found here.
 *
 * What a task leaves of a buffer that is apart holds rows of others, which may change without
 * anything being wrong.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/byte_runs.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "diagnose/overlaps.h"

#define OVERLAPS_NS                                                                                \
    (60 * GBX_NS_PER_SECOND)           /* buffers that are not looked at by then are not apart */
#define CHANGE_MAX (UINT64_C(1) << 26) /* bytes */
#define COMPARED_MAX (UINT64_C(1) << 26)

static const char doing[] = GBX_COMPARING;

/* --- which buffers --- */

/* Memory does not hold what its last writer left there. */
static bool is_about_change(const gbx_audit_finding *f) {
    return !gbx_audit_is_about_pair(f) && !f->is_seen;
}

static gbx_status view_of(const gbx_overlaps *o, const gbx_audit_side *side, gbx_tensor *out_view) {
    gbx_entry entry;
    *out_view = (gbx_tensor){0};
    GBX_TRY(gbx_entries_at(o->q->request->entries, side->entry, &entry));
    if (entry.tensor)
        gbx_record_view(entry.tensor, out_view);
    return NULL;
}

static gbx_status add_buffer(gbx_overlaps *o, const gbx_audit_side *side) {
    gbx_tensor view;
    GBX_TRY(view_of(o, side, &view));
    GBX_TRY(gbx_array_reserve(&o->buffers, &o->buffer_capacity, o->buffer_count + 1, doing));
    o->buffers[o->buffer_count++] = (gbx_shared_buffer){.base = view.data};
    return NULL;
}

static int compare_buffers(const void *a, const void *b) {
    const gbx_shared_buffer *x = a, *y = b;
    return gbx_order_u64(x->base, y->base);
}

static gbx_status find_buffers(gbx_overlaps *o) {
    const gbx_audit *audit = &o->q->d->audit;
    size_t kept = 0;
    for (size_t i = 0; i < audit->finding_count; ++i)
        if (gbx_audit_is_about_pair(&audit->findings[i]) || is_about_change(&audit->findings[i]))
            GBX_TRY(add_buffer(o, &audit->findings[i].first));
    if (o->buffer_count > 0)
        qsort(o->buffers, o->buffer_count, sizeof *o->buffers, compare_buffers);
    for (size_t i = 0; i < o->buffer_count; ++i)
        if (kept == 0 || o->buffers[kept - 1].base != o->buffers[i].base)
            o->buffers[kept++] = o->buffers[i];
    o->buffer_count = kept;
    return NULL;
}

static gbx_shared_buffer *find_buffer(const gbx_overlaps *o, uint64_t base) {
    const gbx_shared_buffer key = {.base = base};
    return o->buffer_count == 0
               ? NULL
               : bsearch(&key, o->buffers, o->buffer_count, sizeof key, compare_buffers);
}

/* --- who uses them --- */

/* Entries of a task follow each other. */
static gbx_status count_users(gbx_overlaps *o) {
    gbx_entries *entries = o->q->request->entries;
    for (uint64_t i = 0; i < gbx_entries_count(entries); ++i) {
        gbx_entry entry;
        gbx_tensor view;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (!entry.tensor)
            continue;
        gbx_record_view(entry.tensor, &view);
        gbx_shared_buffer *b = find_buffer(o, view.data);
        if (!b)
            continue;
        b->users += b->users == 0 || b->last_user != entry.head->task;
        b->last_user = entry.head->task;
    }
    return NULL;
}

static gbx_status add_access(gbx_overlaps *o, const gbx_entry *entry, uint64_t place) {
    gbx_touch made = {.place = place,
                      .task = entry->head->task,
                      .entry = entry->index,
                      .slot = entry->head->arg_index,
                      .is_write = entry->head->stage != GBX_STAGE_BEFORE};
    if (!entry->tensor)
        return NULL;
    gbx_record_view(entry->tensor, &made.view);
    made.base = made.view.data;
    const gbx_shared_buffer *b = find_buffer(o, made.base);
    if (!b || b->users > GBX_BUFFER_TASKS_MAX)
        return NULL;
    GBX_TRY(gbx_array_reserve(&o->accesses, &o->access_capacity, o->access_count + 1, doing));
    o->accesses[o->access_count++] = made;
    return NULL;
}

static int compare_accesses(const void *a, const void *b) {
    const gbx_touch *x = a, *y = b;
    int order = gbx_order_u64(x->base, y->base);
    return order != 0 ? order : gbx_order_u64(x->place, y->place);
}

static gbx_status find_accesses(gbx_overlaps *o) {
    gbx_entries *entries = o->q->request->entries;
    gbx_entry entry;
    GBX_TRY(count_users(o));
    for (uint64_t i = 0; i < gbx_entries_count(entries); ++i) {
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        uint64_t place = gbx_task_graph_place(o->q->graph, entry.head->task);
        GBX_TRY(add_access(o, &entry, place));
    }
    if (o->access_count > 0)
        qsort(o->accesses, o->access_count, sizeof *o->accesses, compare_accesses);
    for (size_t i = 0; i < o->access_count; ++i) {
        gbx_shared_buffer *b = find_buffer(o, o->accesses[i].base);
        b->first = b->count++ == 0 ? i : b->first;
    }
    return NULL;
}

/* --- changes --- */

/* Copies what an entry holds of the memory from `begin` on; what it does not have stays. */
static gbx_status copy_bytes(const gbx_overlaps *o, uint64_t entry, uint64_t begin, uint64_t size,
                             unsigned char *bytes) {
    gbx_entry found;
    gbx_tensor view;
    gbx_byte_runs runs;
    gbx_byte_run run;
    GBX_TRY(gbx_entries_at(o->q->request->entries, entry, &found));
    if (!found.tensor || !gbx_entry_has_values(&found))
        return NULL;
    gbx_record_view(found.tensor, &view);
    uint64_t at = found.tensor->bin_offset, stored = gbx_entry_stored_bytes(&found);
    gbx_byte_runs_begin(&view, &runs);
    while (gbx_byte_runs_next(&runs, &run)) {
        uint64_t first = run.begin > begin ? run.begin : begin;
        uint64_t end = run.end < begin + size ? run.end : begin + size;
        uint64_t offset = run.offset + (first - run.begin);
        if (first < end && offset <= stored && end - first <= stored - offset)
            GBX_TRY(gbx_reader_read_payload(o->q->reader, at + offset, bytes + (first - begin),
                                            end - first));
    }
    return NULL;
}

/* Whether all bytes of a range that the writer really wrote are as it left them. */
static gbx_status are_equal(const gbx_overlaps *o, const gbx_audit_finding *f,
                            const gbx_touch *writer, uint64_t begin, uint64_t size, bool *out_are) {
    unsigned char *left = calloc(2, size), *read = left ? left + size : NULL;
    if (!left)
        return gbx_fail_memory("%s", doing);
    memset(read, 1, size); /* what either does not have differs */
    gbx_status status = copy_bytes(o, f->first.entry, begin, size, left);
    if (!status)
        status = copy_bytes(o, f->second.entry, begin, size, read);
    *out_are = !status;
    for (size_t i = 0; i < writer->written.count && *out_are; ++i) {
        gbx_address_range range = writer->written.items[i];
        uint64_t from = range.begin > begin ? range.begin : begin;
        uint64_t end = range.end < begin + size ? range.end : begin + size;
        *out_are =
            from >= end || memcmp(left + (from - begin), read + (from - begin), end - from) == 0;
    }
    free(left);
    return status;
}

static const gbx_touch *find_writer(const gbx_overlaps *o, const gbx_shared_buffer *b,
                                    const gbx_audit_side *side) {
    gbx_entry entry;
    gbx_status status = gbx_entries_at(o->q->request->entries, side->entry, &entry);
    uint32_t slot = status ? GBX_NO_ARGUMENT : entry.head->arg_index;
    gbx_status_free(status);
    for (size_t i = b->first; i < b->first + b->count; ++i) {
        const gbx_touch *a = &o->accesses[i];
        if (a->is_write && a->task == side->task && a->slot == slot)
            return a;
    }
    return NULL;
}

/* Whether the bytes that changed are none that the last writer, by its view, really wrote. */
static gbx_status are_of_others(const gbx_overlaps *o, const gbx_shared_buffer *b,
                                const gbx_audit_finding *f, bool *out_are) {
    const gbx_touch *writer = find_writer(o, b, &f->first);
    uint64_t begin = b->base + (uint64_t)f->first.begin, end = b->base + (uint64_t)f->first.end;
    bool is_inside = false;
    *out_are = false;
    if (!writer || begin >= end || gbx_dtype_is_packed(writer->view.dtype))
        return NULL;
    for (size_t i = 0; i < writer->written.count; ++i)
        is_inside |= writer->written.items[i].begin < end && writer->written.items[i].end > begin;
    *out_are = !is_inside;
    if (!is_inside || f->is_result || end - begin > CHANGE_MAX)
        return NULL;
    return are_equal(o, f, writer, begin, end - begin, out_are);
}

/* --- values that differ when a task is called again --- */

/* Whether two payloads of a view have other bytes where its task really writes. */
static bool differ_where_written(const gbx_touch *writer, const unsigned char *a,
                                 const unsigned char *b) {
    gbx_byte_runs runs;
    gbx_byte_run run;
    gbx_byte_runs_begin(&writer->view, &runs);
    if (runs.left > COMPARED_MAX / (writer->written.count + 1))
        return true;
    while (gbx_byte_runs_next(&runs, &run))
        for (size_t i = 0; i < writer->written.count; ++i) {
            const gbx_address_range *w = &writer->written.items[i];
            uint64_t begin = w->begin > run.begin ? w->begin : run.begin;
            uint64_t end = w->end < run.end ? w->end : run.end;
            uint64_t offset = run.offset + (begin - run.begin);
            if (begin < end && memcmp(a + offset, b + offset, end - begin) != 0)
                return true;
        }
    return false;
}

static const gbx_touch *find_output(const gbx_overlaps *o, uint64_t task, uint32_t slot) {
    for (size_t i = 0; i < o->access_count; ++i) {
        const gbx_touch *a = &o->accesses[i];
        if (a->is_write && a->task == task && a->slot == slot)
            return find_buffer(o, a->base)->is_known ? a : NULL;
    }
    return NULL;
}

/* Whether an output of a call is that of the run, but for what other tasks wrote meanwhile. */
static bool is_of_run(const gbx_overlaps *o, uint64_t task, const gbx_replay_compared *output,
                      const gbx_replay_payloads *payloads) {
    if (!output->is_compared || output->is_exact || output->bits.mismatches == 0)
        return true;
    const gbx_touch *writer = find_output(o, task, output->slot);
    const unsigned char *run = payloads->dump[output->argument];
    const unsigned char *call = payloads->kept[GBX_KEPT_FIRST][output->argument];
    return writer && run && call && !differ_where_written(writer, run, call);
}

/* As much must differ as did before: a call that happens to leave what the run left explains
 * nothing. */
static gbx_status call_again(gbx_overlaps *o, const gbx_replay_task *task, uint64_t mismatches,
                             bool *out_is_of_run) {
    gbx_replay_job job;
    gbx_replay_result result = {0};
    gbx_replay_payloads payloads = {0};
    gbx_status status = gbx_replay_session_job(&o->session, task, &job);
    if (!status)
        status = gbx_replay_execute(&job, &payloads, &result);
    uint64_t found = status ? 0 : gbx_replay_result_sums(&result).mismatches;
    *out_is_of_run = !status && !result.fault && found > 0 && found >= mismatches;
    for (size_t i = 0; i < result.output_count && *out_is_of_run; ++i)
        *out_is_of_run = is_of_run(o, task->task, &result.outputs[i], &payloads);
    gbx_replay_payloads_free(&payloads);
    gbx_replay_result_free(&result);
    return status;
}

/* A capture of a shared buffer also has what others wrote while the task ran. */
static gbx_status judge_line(gbx_overlaps *o, const gbx_clue *clue, bool *out_is_harmless) {
    gbx_replay_task task;
    *out_is_harmless = false;
    if (gbx_overlaps_are_late(o))
        return NULL;
    gbx_status status = gbx_replay_task_read(o->q->request->entries, clue->task, &task);
    if (!status)
        status = call_again(o, &task, o->q->d->check.lines[clue->index].kernels.mismatches,
                            out_is_harmless);
    gbx_replay_task_free(&task);
    if (!status || !gbx_replay_is_of_task(status))
        return status;
    gbx_status_free(status);
    return NULL;
}

/* --- pairs --- */

static gbx_buffer_user find_user(const gbx_overlaps *o, const gbx_shared_buffer *b, uint64_t task) {
    uint64_t place = gbx_task_graph_place(o->q->graph, task);
    size_t first =
        b->first + gbx_lower_bound_at(o->accesses + b->first, b->count, sizeof *o->accesses,
                                      offsetof(gbx_touch, place), place);
    size_t end = first;
    while (end < b->first + b->count && o->accesses[end].task == task)
        ++end;
    return (gbx_buffer_user){first, end - first};
}

static gbx_status is_pair_apart(gbx_overlaps *o, gbx_shared_buffer *b, const gbx_audit_finding *f,
                                bool *out_is) {
    gbx_tensor second;
    GBX_TRY(view_of(o, &f->second, &second));
    *out_is = second.data == b->base;
    if (b->is_apart || !*out_is)
        return NULL;
    gbx_buffer_user one = find_user(o, b, f->first.task), other = find_user(o, b, f->second.task);
    gbx_audit_finding ignored;
    bool do_share = true, is_turned = one.first > other.first;
    if (one.count > 0 && other.count > 0 && !gbx_overlaps_are_late(o))
        GBX_TRY(gbx_overlaps_compare(o, b, is_turned ? &other : &one, is_turned ? &one : &other,
                                     &ignored, &do_share));
    *out_is = !do_share;
    b->sharing += do_share;
    return NULL;
}

/* --- clues --- */

static gbx_status judge(gbx_overlaps *o, const gbx_audit_finding *f, bool *out_is_harmless) {
    gbx_tensor first;
    *out_is_harmless = false;
    GBX_TRY(view_of(o, &f->first, &first));
    gbx_shared_buffer *b = find_buffer(o, first.data);
    if (!b || !b->is_known)
        return NULL;
    if (gbx_audit_is_about_pair(f))
        return is_pair_apart(o, b, f, out_is_harmless);
    return b->is_apart ? are_of_others(o, b, f, out_is_harmless) : NULL;
}

static gbx_status report_dropped(gbx_inquiry *q, size_t pairs, size_t changes, size_t tasks) {
    q->d->asked[GBX_ASKED_AUDIT].findings -= pairs + changes;
    q->d->asked[GBX_ASKED_REPLAY].findings -= tasks;
    if (tasks > 0)
        GBX_TRY(gbx_inquiry_note_harmless(
            q, GBX_ASKED_REPLAY,
            "%zu %s other values than the dump has, where %s not write and another task did", tasks,
            tasks == 1 ? "task leaves" : "tasks leave", tasks == 1 ? "it does" : "they do"));
    if (pairs > 0)
        GBX_TRY(gbx_inquiry_note_harmless(
            q, GBX_ASKED_AUDIT, "%zu %s without order %s the same memory, and %s no byte of it",
            pairs, pairs == 1 ? "pair of tasks" : "pairs of tasks",
            pairs == 1 ? "declares" : "declare", pairs == 1 ? "shares" : "share"));
    if (changes > 0)
        GBX_TRY(gbx_inquiry_note_harmless(q, GBX_ASKED_AUDIT,
                                          "%zu %s of bytes that the task which declares to write "
                                          "them leaves to others",
                                          changes, changes == 1 ? "change" : "changes"));
    return NULL;
}

static const gbx_audit_finding *finding_of(const gbx_inquiry *q, const gbx_clue *clue) {
    const gbx_audit_finding *f =
        clue->source == GBX_CLUE_AUDIT ? &q->d->audit.findings[clue->index] : NULL;
    return f && (gbx_audit_is_about_pair(f) || is_about_change(f)) ? f : NULL;
}

/* Marks in `drops` what is harmless. */
static gbx_status judge_clues(gbx_overlaps *o, bool *drops) {
    for (size_t i = 0; i < o->q->clue_count; ++i) {
        const gbx_audit_finding *f = finding_of(o->q, &o->q->clues[i]);
        const gbx_clue clue = o->q->clues[i];
        if (f)
            GBX_TRY(judge(o, f, &drops[i]));
        else if (clue.source == GBX_CLUE_LINE && clue.other == GBX_DIAGNOSIS_NOBODY)
            GBX_TRY(judge_line(o, &clue, &drops[i]));
    }
    return NULL;
}

/* Tasks of the buffer share bytes, but no pair is known that does. */
static gbx_status is_needed(const gbx_overlaps *o, const gbx_audit_finding *f, bool *out_is) {
    gbx_tensor first;
    GBX_TRY(view_of(o, &f->first, &first));
    const gbx_shared_buffer *b = find_buffer(o, first.data);
    *out_is = b && !b->is_apart && b->sharing == 0;
    return NULL;
}

static gbx_status drop_clues(gbx_overlaps *o, const bool *drops) {
    gbx_inquiry *q = o->q;
    size_t kept = 0, pairs = 0, changes = 0, tasks = 0;
    for (size_t i = 0; i < q->clue_count; ++i) {
        const gbx_clue clue = q->clues[i];
        const gbx_audit_finding *f = drops[i] ? finding_of(q, &clue) : NULL;
        bool is_kept = !drops[i];
        if (f)
            GBX_TRY(is_needed(o, f, &is_kept));
        tasks += !is_kept && !f;
        pairs += !is_kept && f && gbx_audit_is_about_pair(f);
        changes += !is_kept && f && is_about_change(f);
        if (is_kept)
            q->clues[kept++] = clue;
    }
    q->clue_count = kept;
    return report_dropped(q, pairs, changes, tasks);
}

static gbx_status compare_all(gbx_overlaps *o) {
    /* Findings that are not listed may be about these buffers, too. */
    if (o->q->d->audit.counts.has_more)
        return NULL;
    GBX_TRY(find_buffers(o));
    if (o->buffer_count == 0)
        return NULL;
    GBX_TRY(find_accesses(o));
    o->users = calloc(GBX_BUFFER_TASKS_MAX, sizeof *o->users);
    o->before = calloc((size_t)GBX_BUFFER_TASKS_MAX * GBX_BUFFER_TASKS_MAX, sizeof *o->before);
    if (!o->users || !o->before)
        return gbx_fail_memory("%s", doing);
    GBX_TRY(gbx_inquiry_open_session(o->q, &o->session));
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &o->map));
    GBX_TRY(gbx_overlaps_ask(o));
    bool *drops = calloc(o->q->clue_count + 1, sizeof *drops);
    if (!drops)
        return gbx_fail_memory("%s", doing);
    gbx_status status = judge_clues(o, drops);
    if (!status)
        status = drop_clues(o, drops);
    free(drops);
    return status;
}

/* --- tasks that did not complete --- */

static bool did_end(const gbx_inquiry *q, uint64_t task) {
    uint64_t place = gbx_task_graph_place(q->graph, task);
    return place == UINT64_MAX || gbx_task_graph_at(q->graph, place)->end_ns != UINT64_MAX;
}

/* Nobody knows which bytes such a task would have used: a pair with it is only evidence of why it
 * did not complete. */
static void weaken_pairs(gbx_inquiry *q) {
    for (size_t i = 0; i < q->clue_count && gbx_inquiry_has_failed(q); ++i) {
        gbx_clue *clue = &q->clues[i];
        const gbx_audit_finding *f = finding_of(q, clue);
        if (!f || !gbx_audit_is_about_pair(f) ||
            (did_end(q, f->first.task) && did_end(q, f->second.task)))
            continue;
        bool is_second = !did_end(q, f->second.task);
        clue->task = is_second ? f->second.task : f->first.task;
        clue->other = is_second ? f->first.task : f->second.task;
        clue->place = gbx_task_graph_place(q->graph, clue->task);
        clue->is_weak = clue->is_assigned = true;
    }
}

gbx_status gbx_inquiry_compare_overlaps(gbx_inquiry *q) {
    gbx_overlaps o = {.q = q, .deadline_ns = gbx_clock_ns() + OVERLAPS_NS};
    gbx_status status = compare_all(&o);
    weaken_pairs(q);
    gbx_replay_session_close(&o.session);
    gbx_memory_map_destroy(o.map);
    for (size_t i = 0; i < o.access_count; ++i)
        free(o.accesses[i].written.items);
    free(o.accesses);
    free(o.buffers);
    free(o.users);
    free(o.before);
    return status;
}
