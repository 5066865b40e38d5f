#include "analysis/blame/first_nan.h"

#include <math.h>
#include <stdlib.h>

#include <glassbox/tensor.h>

#include "base/memory.h"
#include "base/numbers.h"

enum { BATCH_ENTRIES = 512, READ_ELEMENTS = 512 };

static const gbx_name input_names[GBX_NAN_INPUTS_COUNT] = {
    [GBX_NAN_INPUTS_CLEAN] = {"clean", NULL, NULL},
    [GBX_NAN_INPUTS_HAVE_SOME] = {"have_some", NULL, NULL},
    [GBX_NAN_INPUTS_UNKNOWN] = {"unknown", NULL, NULL}};
const gbx_name_set gbx_nan_inputs_names = {.rows = input_names, .count = GBX_NAN_INPUTS_COUNT};

/* An output, and when its task completed. */
typedef struct output {
    uint64_t end_ns;
    uint64_t place; /* of the task in graph order */
    uint64_t entry;
} output;

typedef struct walk {
    gbx_entries *entries;
    const gbx_reader *reader;
    output *outputs;
    uint64_t count;
    const gbx_first_nan_request *request;
    gbx_first_nan *found;
} walk;

static int compare_outputs(const void *a, const void *b) {
    const output *left = a, *right = b;
    if (left->end_ns != right->end_ns)
        return left->end_ns < right->end_ns ? -1 : 1;
    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    return left->entry < right->entry ? -1 : left->entry > right->entry;
}

static bool is_selected(const gbx_selected *only, uint64_t index) {
    if (!only)
        return true;
    uint64_t at = gbx_lower_bound_u64(only->indices, only->count, index);
    return at < only->count && only->indices[at] == index;
}

/* Outputs of floats, in the order in which their tasks completed. */
static gbx_status list_outputs(walk *w, const gbx_task_graph *graph) {
    uint64_t count = gbx_entries_count(w->entries);
    w->outputs = malloc((count + 1) * sizeof *w->outputs);
    if (!w->outputs)
        return gbx_fail_memory("listing the outputs of the dump");
    for (uint64_t i = 0; i < count; ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(w->entries, i, &entry));
        if (entry.head->stage != GBX_STAGE_AFTER || !gbx_dtype_is_float(entry.dtype) ||
            !is_selected(w->request->only, i))
            continue;
        if (entry.head->flags & GBX_FLAG_IN_FLIGHT) {
            ++w->found->in_flight;
            continue;
        }
        uint64_t place = gbx_task_graph_place(graph, entry.head->task);
        uint64_t end_ns =
            place == UINT64_MAX ? UINT64_MAX : gbx_task_graph_at(graph, place)->end_ns;
        /* A dump without journal has no ends: an output was taken right after it. */
        w->outputs[w->count++] =
            (output){end_ns == UINT64_MAX ? entry.head->time_ns : end_ns, place, i};
    }
    if (w->count > 1)
        qsort(w->outputs, w->count, sizeof *w->outputs, compare_outputs);
    return NULL;
}

/* Whether the statistics are those of all elements. */
static bool is_whole(const gbx_entry *entry) {
    return !entry->tensor || gbx_record_statistics(entry->tensor) ||
           !(entry->head->flags & GBX_FLAG_TRUNCATED);
}

/* --- one output --- */

static bool is_special(uint32_t dtype, uint64_t bits) {
    return !isfinite(gbx_dtype_to_f64(dtype, bits));
}

static gbx_status find_element(walk *w, const gbx_entry *entry, gbx_nan_output *out) {
    gbx_entry_values values;
    uint64_t bits[READ_ELEMENTS];
    if (!gbx_entry_has_values(entry))
        return NULL;
    GBX_TRY(gbx_entry_values_open(entry, w->reader, &values));
    for (uint64_t at = 0; at < values.elements.stored && !out->has_element; at += READ_ELEMENTS) {
        size_t count = (size_t)gbx_min_u64(values.elements.stored - at, READ_ELEMENTS);
        GBX_TRY(gbx_elements_read(&values.elements, at, count, bits));
        for (size_t i = 0; i < count && !out->has_element; ++i) {
            out->has_element = is_special(out->dtype, bits[i]);
            out->element = at + i;
            out->bits = bits[i];
        }
    }
    return NULL;
}

/* Looks at what the task read; infinities count only if `counts_inf`. */
static gbx_status look_at_inputs(walk *w, bool counts_inf, gbx_nan_output *out) {
    uint64_t count = gbx_entries_count(w->entries);
    out->inputs = GBX_NAN_INPUTS_CLEAN;
    for (uint64_t i = gbx_entries_find(w->entries, out->task); i < count; ++i) {
        gbx_entry entry;
        gbx_statistics statistics;
        bool is_there = false;
        GBX_TRY(gbx_entries_at(w->entries, i, &entry));
        if (entry.head->task != out->task)
            break;
        if (entry.head->stage != GBX_STAGE_BEFORE || !gbx_dtype_is_float(entry.dtype))
            continue;
        bool is_known = is_whole(&entry);
        GBX_TRY(gbx_entry_statistics(&entry, w->reader, &statistics, &is_there));
        uint64_t nan_count = is_there ? statistics.nan_count : 0;
        uint64_t inf_count = is_there ? statistics.inf_count : 0;
        bool has_some = nan_count > 0 || (counts_inf && inf_count > 0);
        if (!has_some && is_there && is_known)
            continue;
        if (!has_some && out->inputs == GBX_NAN_INPUTS_UNKNOWN)
            continue;
        out->inputs = has_some ? GBX_NAN_INPUTS_HAVE_SOME : GBX_NAN_INPUTS_UNKNOWN;
        out->input = i;
        out->input_nan_count = nan_count;
        out->input_inf_count = inf_count;
        if (has_some)
            return NULL;
    }
    return NULL;
}

static gbx_status look_at(walk *w, uint64_t index, const gbx_entry_summary *summary) {
    gbx_first_nan *found = w->found;
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(w->entries, index, &entry));
    ++found->outputs;
    found->unknown += !summary->is_there || !is_whole(&entry);
    uint64_t nan_count = summary->is_there ? summary->statistics.nan_count : 0;
    uint64_t inf_count = summary->is_there ? summary->statistics.inf_count : 0;
    if (nan_count == 0 && inf_count == 0)
        return NULL;
    gbx_nan_output out = {.task = entry.head->task,
                          .entry = index,
                          .nan_count = nan_count,
                          .inf_count = inf_count,
                          .dtype = entry.dtype};
    bool is_needed = !found->has_introduced || (nan_count > 0 && !found->has_nan);
    if (!is_needed)
        return NULL;
    GBX_TRY(find_element(w, &entry, &out));
    if (w->request->passes_over) {
        bool passes;
        GBX_TRY(w->request->passes_over(w->request->context, &out, &passes));
        if (passes)
            return NULL;
    }
    if (nan_count > 0 && !found->has_nan) {
        GBX_TRY(look_at_inputs(w, false, &out));
        found->has_nan = out.inputs == GBX_NAN_INPUTS_CLEAN;
        if (found->has_nan)
            found->nan = out;
    }
    GBX_TRY(look_at_inputs(w, true, &out));
    if (!found->has_first) {
        found->has_first = true;
        found->first = out;
    }
    if (!found->has_introduced && out.inputs == GBX_NAN_INPUTS_CLEAN) {
        found->has_introduced = true;
        found->introduced = out;
    }
    return NULL;
}

/* --- all --- */

static gbx_status look_at_all(walk *w) {
    const gbx_first_nan_request *request = w->request;
    uint64_t indices[BATCH_ENTRIES];
    gbx_entry_summary summaries[BATCH_ENTRIES];
    for (uint64_t at = 0; at < w->count;) {
        size_t count = (size_t)gbx_min_u64(w->count - at, BATCH_ENTRIES), done = 0;
        if (request->progress)
            request->progress(request->context, at, w->count);
        for (size_t i = 0; i < count; ++i)
            indices[i] = w->outputs[at + i].entry;
        GBX_TRY(gbx_entries_statistics(w->entries, indices, count, summaries, &done));
        for (size_t i = 0; i < done && i < count; ++i) {
            GBX_TRY(look_at(w, indices[i], &summaries[i]));
            if (w->found->has_introduced && w->found->has_nan)
                return NULL;
        }
        at += done;
    }
    return NULL;
}

gbx_status gbx_first_nan_find(gbx_entries *entries, const gbx_task_graph *graph,
                              const gbx_first_nan_request *request, gbx_first_nan *out_first) {
    walk w = {.entries = entries,
              .reader = gbx_entries_reader(entries),
              .request = request,
              .found = out_first};
    *out_first = (gbx_first_nan){0};
    gbx_status status = list_outputs(&w, graph);
    if (!status)
        status = look_at_all(&w);
    free(w.outputs);
    return status;
}
