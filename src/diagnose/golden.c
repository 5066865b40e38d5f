/* What the golden of the run found wrong, who wrote that last, and from what. */
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/memory.h"
#include "diagnose/internal.h"
#include "store/run/golden_result.h"
#include "tensor/signature.h"
#include "tensor/view.h"

/* --- a kernel that nobody calls --- */

/* Whether both take as many arguments of each sort; one of them may write what the other only
 * reads.
 */
static bool has_like_signature(const gbx_run_kernel *a, const gbx_run_kernel *b) {
    bool is_like = a->signature_count == b->signature_count && a->signature_count > 0;
    for (size_t i = 0; i < a->signature_count && is_like; ++i)
        is_like = (gbx_parameter_kind(a->signature[i]) == GBX_PARAMETER_SCALAR) ==
                  (gbx_parameter_kind(b->signature[i]) == GBX_PARAMETER_SCALAR);
    return is_like;
}

static gbx_status has_task(const gbx_inquiry *q, uint32_t func_id, bool *out_has) {
    *out_has = false;
    for (uint64_t i = 0; i < q->d->tasks && !*out_has; ++i) {
        gbx_record_task record;
        bool is_found;
        GBX_TRY(gbx_reader_find_task(q->reader, gbx_task_graph_at(q->graph, i)->task, &record,
                                     &is_found));
        for (int k = 0; k < GBX_SUBTASK_COUNT && is_found; ++k)
            *out_has |= record.func_ids[k] == func_id;
    }
    return NULL;
}

/* A wrong func_id calls one kernel in the place of another. */
static gbx_status find_unused(gbx_inquiry *q, uint64_t task) {
    const gbx_run_info *run = gbx_reader_run(q->reader);
    gbx_record_task record;
    bool is_found;
    GBX_TRY(gbx_reader_find_task(q->reader, task, &record, &is_found));
    for (int k = 0; k < GBX_SUBTASK_COUNT && is_found; ++k) {
        const gbx_run_kernel *own = gbx_run_info_kernel(run, record.func_ids[k]);
        for (size_t i = 0; own && i < run->kernel_count; ++i) {
            bool is_used = true;
            if (&run->kernels[i] != own && has_like_signature(own, &run->kernels[i]))
                GBX_TRY(has_task(q, run->kernels[i].func_id, &is_used));
            if (!is_used)
                q->d->unused_func = run->kernels[i].func_id;
        }
    }
    return NULL;
}

/* --- the first wrong element --- */

/* No task has written the element, and nothing is unknown about that. */
static bool is_unwritten(const gbx_blame_element *element, const gbx_blame_answer *answer) {
    return element->is_placed && answer->writer_count == 0 && answer->in_flight == 0 &&
           answer->undecided == 0 && answer->missing_tasks == 0;
}

/* In which order wrong outputs are asked about: what no task has written is wrong for sure, then
 * the one that was written first, because the bug lies before all. */
static uint64_t order_of(const gbx_inquiry *q, const gbx_blame_element *element,
                         const gbx_blame_answer *answer) {
    if (is_unwritten(element, answer))
        return 0;
    uint64_t place = answer->writer_count > 0
                         ? gbx_task_graph_place(q->graph, answer->writers[0].task)
                         : UINT64_MAX;
    return place < UINT64_MAX ? place + 1 : place;
}

/* Chooses one. What findings explain is left out. */
static gbx_status choose(gbx_inquiry *q, gbx_blame *blame, const gbx_golden_result *golden,
                         size_t *out_chosen, bool *out_is_any) {
    gbx_diagnosis *d = q->d;
    uint64_t first = UINT64_MAX;
    *out_is_any = false;
    for (size_t i = 0; i < golden->count; ++i) {
        gbx_blame_element element;
        gbx_blame_answer answer;
        GBX_TRY(gbx_blame_find(blame, golden->elements[i], &element));
        GBX_TRY(gbx_blame_ask(blame, &element, &answer));
        uint64_t order = order_of(q, &element, &answer);
        if (*out_is_any && order >= first)
            continue;
        if (d->finding_count > 0 &&
            (answer.writer_count != 1 || gbx_diagnosis_explains(d, answer.writers[0].task)))
            continue;
        *out_is_any = true;
        first = order;
        *out_chosen = i;
        d->blamed = element;
        d->blame = answer;
    }
    return NULL;
}

/* --- what no task has written --- */

static uint64_t distance_between(uint64_t address, const gbx_tensor *view) {
    int64_t first, end;
    if (view->data == 0 || gbx_tensor_numel(view) == 0 || !gbx_tensor_is_valid(view, &first, &end))
        return UINT64_MAX;
    uint64_t begin = view->data + (uint64_t)first, behind = view->data + (uint64_t)end;
    return address < begin ? begin - address : address < behind ? 0 : address - behind + 1;
}

/* The task that wrote nearest to an element, in the same output of the run. */
static gbx_status find_nearest(gbx_inquiry *q) {
    gbx_diagnosis *d = q->d;
    const gbx_blame_element *wrong = &d->blamed;
    uint64_t nearest = gbx_tensor_payload_bytes(&wrong->tensor);
    d->nearest = (gbx_upstream){GBX_DIAGNOSIS_NOBODY, 0};
    for (uint64_t i = 0; i < gbx_entries_count(q->request->entries); ++i) {
        gbx_entry entry;
        gbx_tensor view;
        GBX_TRY(gbx_entries_at(q->request->entries, i, &entry));
        if (!entry.tensor || entry.head->stage != GBX_STAGE_AFTER)
            continue;
        gbx_record_view(entry.tensor, &view);
        uint64_t distance = distance_between(wrong->address, &view);
        if (distance >= nearest)
            continue;
        nearest = distance;
        d->nearest = (gbx_upstream){entry.head->task, i};
    }
    return NULL;
}

/* --- the tasks before it --- */

static bool is_right(const gbx_inquiry *q, uint64_t task) {
    const gbx_check_line *line = gbx_inquiry_find_line(q, task);
    return line && line->verdict == GBX_CHECK_RIGHT;
}

/* The task nearest to the wrong element that no reference has found right. */
static void find_unchecked(gbx_inquiry *q, const gbx_blame_writer *writer) {
    gbx_diagnosis *d = q->d;
    if (!is_right(q, writer->task)) {
        d->unchecked = (gbx_upstream){writer->task, writer->entry};
        return;
    }
    for (size_t i = 0; i < d->upstream_count; ++i)
        if (!is_right(q, d->upstream[i].task)) {
            d->unchecked = d->upstream[i];
            return;
        }
}

static gbx_status look_upstream(gbx_inquiry *q) {
    gbx_diagnosis *d = q->d;
    free(d->upstream);
    d->upstream = NULL;
    d->upstream_count = 0;
    d->is_upstream_known = false;
    d->unchecked.task = GBX_DIAGNOSIS_NOBODY;
    d->is_unwritten = is_unwritten(&d->blamed, &d->blame);
    if (d->is_unwritten)
        return find_nearest(q);
    if (d->blame.writer_count != 1)
        return NULL;
    const gbx_blame_writer *writer = &d->blame.writers[0];
    GBX_TRY(gbx_upstream_find(q->request->entries, q->graph, writer->task, &d->upstream,
                              &d->upstream_count, &d->is_upstream_known));
    find_unchecked(q, writer);
    return find_unused(q, writer->task);
}

static gbx_status blame_wrong(gbx_inquiry *q, const gbx_golden_result *golden, size_t *out_chosen,
                              bool *out_is_any) {
    gbx_blame *blame = NULL;
    gbx_status status = gbx_blame_create(q->request->entries, q->graph, &blame);
    if (!status)
        status = choose(q, blame, golden, out_chosen, out_is_any);
    q->d->has_blame |= !status;
    gbx_blame_destroy(blame);
    return status || !*out_is_any ? status : look_upstream(q);
}

static gbx_status keep_element(gbx_diagnosis *d, const char *element) {
    free(d->golden);
    d->golden = strdup(element);
    return d->golden ? NULL : gbx_fail_memory("diagnosing");
}

static gbx_status ask_wrong(gbx_inquiry *q, const gbx_golden_result *golden) {
    size_t chosen = 0;
    bool is_any;
    gbx_status status = blame_wrong(q, golden, &chosen, &is_any), noted = NULL;
    if (status)
        noted = gbx_inquiry_lack(q, GBX_ASKED_GOLDEN, "%s", gbx_status_message(status));
    gbx_status_free(status);
    GBX_TRY(noted);
    return keep_element(q->d, golden->elements[chosen]);
}

gbx_status gbx_inquiry_ask_golden(gbx_inquiry *q) {
    gbx_diagnosis_asked *asked = &q->d->asked[GBX_ASKED_GOLDEN];
    gbx_golden_result golden;
    gbx_status status = gbx_golden_result_read(q->request->directory, &golden);
    if (!status) {
        *(golden.is_known ? &asked->tasks : &asked->not_asked) = q->d->tasks;
        if (!golden.is_known)
            status =
                gbx_inquiry_lack(q, GBX_ASKED_GOLDEN, "the dump does not say what a golden found");
        else if (golden.count > 0)
            status = ask_wrong(q, &golden);
    }
    gbx_golden_result_free(&golden);
    return status;
}

gbx_status gbx_inquiry_ask_unexplained(gbx_inquiry *q, bool *out_is_any) {
    gbx_golden_result golden;
    size_t chosen = 0;
    *out_is_any = false;
    gbx_status status = gbx_golden_result_read(q->request->directory, &golden);
    if (!status)
        status = blame_wrong(q, &golden, &chosen, out_is_any);
    if (!status && *out_is_any)
        status = keep_element(q->d, golden.elements[chosen]);
    gbx_golden_result_free(&golden);
    return status;
}
