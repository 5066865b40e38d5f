/* The tasks of a dump, and what each read and wrote. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "analysis/audit/internal.h"
#include "base/checked.h"
#include "base/memory.h"
#include "tensor/signature.h"
#include "tensor/view.h"

/* A view with more pieces, or that ends further from the start of its buffer, is not followed. */
#define RUNS_MAX (UINT64_C(1) << 20)
#define REACH_MAX (INT64_C(1) << 56)
/* Pieces of all compared pairs of accesses together: about a minute. */
#define PAIR_PIECES_MAX (UINT64_C(1) << 26)

/* --- pieces of accesses --- */

/* The view is valid; UINT64_MAX if the count overflows. */
static uint64_t count_runs(const gbx_tensor *view) {
    gbx_byte_runs runs;
    gbx_byte_runs_begin(view, &runs);
    return runs.left;
}

gbx_status gbx_access_view(gbx_audit_state *state, const gbx_access *access, gbx_tensor *out_view) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(state->entries, access->entry, &entry));
    gbx_record_view(entry.tensor, out_view);
    return NULL;
}

gbx_status gbx_access_runs(gbx_audit_state *state, const gbx_access *access,
                           gbx_byte_runs *out_runs) {
    if (access->is_contiguous) {
        *out_runs = (gbx_byte_runs){.view = {.data = access->begin},
                                    .bits = 8,
                                    .run_bits = (access->end - access->begin) * 8,
                                    .left = access->begin < access->end};
        return NULL;
    }
    gbx_tensor view;
    GBX_TRY(gbx_access_view(state, access, &view));
    gbx_byte_runs_begin(&view, out_runs);
    return NULL;
}

gbx_status gbx_access_fit(gbx_audit_state *state, const gbx_memory_map *map, gbx_access *access) {
    gbx_byte_runs runs;
    if (!access->is_followed || access->is_contiguous)
        return NULL;
    GBX_TRY(gbx_access_runs(state, access, &runs));
    if (gbx_memory_map_has_room(map, runs.left))
        return NULL;
    access->is_followed = false;
    state->audit->counts.unfollowed += access->is_write;
    return NULL;
}

gbx_status gbx_access_map_pair(gbx_audit_state *state, const gbx_access *first,
                               const gbx_access *second, bool *out_is_made) {
    gbx_byte_runs runs, others;
    gbx_byte_run run;
    *out_is_made = false;
    if (!first->is_followed || !second->is_followed)
        return NULL;
    GBX_TRY(gbx_access_runs(state, first, &runs));
    GBX_TRY(gbx_access_runs(state, second, &others));
    state->pair_pieces += runs.left + others.left;
    if (state->pair_pieces > PAIR_PIECES_MAX)
        return NULL;
    gbx_memory_map_clear(state->map);
    while (gbx_byte_runs_next(&runs, &run)) {
        gbx_memory_range range = {run.begin, run.end, (uint64_t)(first - state->accesses),
                                  run.offset};
        GBX_TRY(gbx_memory_map_set(state->map, &range));
    }
    *out_is_made = true;
    return NULL;
}

/* --- tasks --- */

static void miss_outputs(gbx_audit_state *state, uint64_t number) {
    uint64_t place = gbx_task_graph_place(state->graph, number);
    if (place == UINT64_MAX)
        state->is_any_missing = true;
    else
        state->tasks[place].is_missing = true;
}

/*
 * Whether each missing record has a LOSS. A run that was killed, recovered or not, or that lost the
 * chip does not have them: each thread hands over its own records, so one thread may miss records
 * that are older than those of another.
 */
static bool are_losses_known(const gbx_reader *reader) {
    if (gbx_reader_is_complete(reader))
        return true;
    return gbx_reader_get_extent(reader)->stop == GBX_STOP_END &&
           gbx_reader_ending(reader) == GBX_ENDING_RECORDS_LOST;
}

static uint64_t count_declared(const gbx_run_info *run, uint32_t func_id) {
    const gbx_run_kernel *kernel = gbx_run_info_kernel(run, func_id);
    uint64_t count = 0;
    for (size_t i = 0; kernel && i < kernel->signature_count; ++i) {
        uint32_t kind = gbx_parameter_kind(kernel->signature[i]);
        count += kind == GBX_ROLE_OUTPUT || kind == GBX_ROLE_INOUT;
    }
    return count;
}

/* A manifest does not record filters: outputs are missing if kernels declare more than it has. */
static gbx_status look_for_outputs(gbx_reader *reader, const gbx_audit_state *state,
                                   gbx_audit_task *task) {
    gbx_record_task record;
    bool is_found = false;
    uint64_t outputs = 0;
    GBX_TRY(gbx_reader_find_task(reader, task->number, &record, &is_found));
    for (uint64_t i = task->first; i < task->first + task->count; ++i)
        outputs += state->accesses[i].is_write;
    for (size_t i = 0; is_found && i < sizeof record.func_ids / sizeof record.func_ids[0]; ++i)
        task->is_missing |= count_declared(gbx_reader_run(reader), record.func_ids[i]) > outputs;
    return NULL;
}

static gbx_status note_missing(gbx_audit_state *state, gbx_reader *reader) {
    const gbx_reader_origin *origin = gbx_reader_get_origin(reader);
    gbx_audit_counts *counts = &state->audit->counts;
    uint64_t last = 0;
    state->is_any_missing =
        !gbx_run_has_all_metadata(gbx_reader_run(reader)) || !are_losses_known(reader);
    /* Only a loss that names one record shows which task it belongs to. */
    uint64_t count = gbx_reader_list_count(reader, GBX_LIST_LOSSES);
    for (uint64_t i = 0; i < count; ++i) {
        const gbx_record *record = NULL;
        GBX_TRY(gbx_reader_list_at(reader, GBX_LIST_LOSSES, i, &record));
        bool is_known = record->stage != GBX_STAGE_NONE && record->arg_index != GBX_ARG_NONE;
        if (((const gbx_record_loss *)record)->count != 1 || !is_known)
            state->is_any_missing = true;
        else if (record->stage != GBX_STAGE_BEFORE)
            miss_outputs(state, record->task);
    }
    count = gbx_reader_list_count(reader, GBX_LIST_SKIPPED);
    for (uint64_t i = 0; i < count; ++i) {
        const gbx_record *record = NULL;
        GBX_TRY(gbx_reader_list_at(reader, GBX_LIST_SKIPPED, i, &record));
        miss_outputs(state, record->task);
    }
    for (uint64_t i = 0; i < state->task_count; ++i) {
        if (!origin->is_journal)
            GBX_TRY(look_for_outputs(reader, state, &state->tasks[i]));
        else if (state->tasks[i].end_ns == UINT64_MAX)
            state->tasks[i].is_missing = true;
        counts->missing_tasks += state->tasks[i].is_missing;
        last = state->tasks[i].number > last ? state->tasks[i].number : last;
    }
    if (!origin->is_journal && state->task_count > 0 && last >= state->task_count)
        state->is_any_missing = true; /* task numbers have gaps */
    if (state->is_any_missing)
        counts->missing_tasks = UINT64_MAX;
    return NULL;
}

/* --- accesses --- */

/* Whether the payload has the same bytes as memory: not for packed elements if a row or the view
 * begins or ends in the middle of a byte. */
static bool is_bytewise(const gbx_tensor *view) {
    if (!gbx_dtype_is_packed(view->dtype))
        return true;
    return view->ndims > 0 && view->shape[view->ndims - 1] % 2 == 0 &&
           view->start_offset % 2 == 0 && gbx_tensor_is_contiguous(view);
}

/* A dump without journal has no times of tasks: they are taken from the inputs, which come first,
 * and the outputs. All that is known of a task without inputs is that it began before it ended. */
static void set_times(gbx_audit_task *task, const gbx_access *access) {
    if (task->count == 1)
        task->begin_ns = access->time_ns;
    if (access->is_write && task->end_ns == UINT64_MAX)
        task->end_ns = access->time_ns;
}

static gbx_status add_access(gbx_audit_state *state, const gbx_entry *entry, uint64_t place) {
    gbx_tensor view;
    int64_t first, end;
    gbx_record_view(entry->tensor, &view);
    if (!gbx_tensor_is_valid(&view, &first, &end))
        return gbx_fail(GBX_BAD_FORMAT,
                        "auditing the dump: the view of entry %" PRIu64 " (task %" PRIu64
                        ", argument %u) is invalid; run glassbox verify",
                        entry->index, entry->head->task, entry->head->arg_index);
    gbx_audit_task *task = &state->tasks[place];
    if (task->count++ == 0)
        task->first = state->access_count;
    gbx_access *access = &state->accesses[state->access_count++];
    *access = (gbx_access){.entry = entry->index,
                           .task = place,
                           .begin = view.data + (uint64_t)first,
                           .end = view.data + (uint64_t)end,
                           .buffer = view.data,
                           .time_ns = entry->head->time_ns,
                           .seen_ns = entry->head->time_ns,
                           .arg_index = entry->head->arg_index,
                           .dtype = (uint8_t)entry->dtype,
                           .is_write = entry->head->stage == GBX_STAGE_AFTER};
    uint32_t flags = entry->head->flags;
    uint64_t whole = gbx_tensor_payload_bytes(&view);
    bool is_sound = is_bytewise(&view) && !gbx_entry_is_overwritten(entry);
    access->offset = entry->tensor->bin_offset;
    access->stored = gbx_entry_stored_bytes(entry);
    access->hash_low = entry->tensor->hash_low;
    access->hash_high = entry->tensor->hash_high;
    access->whole = whole;
    access->has_bytes = is_sound && (flags & GBX_FLAG_HAS_PAYLOAD) && access->stored <= whole;
    access->has_hash = is_sound && (flags & GBX_FLAG_HAS_HASH) && !(flags & GBX_FLAG_TRUNCATED) &&
                       (access->stored == whole || !(flags & GBX_FLAG_HAS_PAYLOAD));
    access->is_contiguous = is_bytewise(&view) && gbx_tensor_is_contiguous(&view);
    access->is_followed =
        access->is_contiguous || (end <= REACH_MAX && count_runs(&view) <= RUNS_MAX);
    if (!gbx_reader_get_origin(gbx_entries_reader(state->entries))->is_journal)
        set_times(task, access);
    return NULL;
}

static gbx_status gather_accesses(gbx_audit_state *state) {
    uint64_t count = gbx_entries_count(state->entries);
    uint64_t pieces = 0;
    GBX_TRY(gbx_audit_count_pieces(gbx_entries_reader(state->entries), &pieces));
    state->accesses = calloc(count + pieces + 1, sizeof *state->accesses);
    if (!state->accesses)
        return gbx_fail_memory("auditing the dump");
    for (uint64_t i = 0; i < count; ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(state->entries, i, &entry));
        if (entry.head->flags & GBX_FLAG_IN_FLIGHT) {
            ++state->audit->counts.in_flight;
            continue;
        }
        if (!entry.tensor)
            continue;
        GBX_TRY(add_access(state, &entry, gbx_task_graph_place(state->graph, entry.head->task)));
        const gbx_access *access = &state->accesses[state->access_count - 1];
        ++state->audit->counts.records;
        state->audit->counts.inputs += !access->is_write;
        state->audit->counts.outputs += access->is_write;
        state->audit->counts.unfollowed += access->is_write && !access->is_followed;
    }
    return NULL;
}

/* --- gathering --- */

gbx_status gbx_audit_gather(gbx_audit_state *state) {
    gbx_reader *reader = gbx_entries_reader(state->entries);
    gbx_audit_counts *counts = &state->audit->counts;
    unsigned needed = GBX_KNOWN_ADDRESSES | GBX_KNOWN_TIMES;
    if ((gbx_reader_get_origin(reader)->known & needed) != needed)
        return gbx_fail(GBX_BAD_FORMAT,
                        "auditing %s: its records lack addresses or times, which an audit needs",
                        gbx_reader_get_origin(reader)->records_path);
    state->task_count = gbx_task_graph_count(state->graph);
    state->tasks = calloc(state->task_count + 1, sizeof *state->tasks);
    if (!state->tasks)
        return gbx_fail_memory("auditing the dump");
    for (uint64_t i = 0; i < state->task_count; ++i) {
        const gbx_graph_task *task = gbx_task_graph_at(state->graph, i);
        state->tasks[i] = (gbx_audit_task){
            .number = task->task, .begin_ns = task->begin_ns, .end_ns = task->end_ns};
    }
    GBX_TRY(gather_accesses(state));
    GBX_TRY(gbx_audit_gather_results(state, reader));
    GBX_TRY(note_missing(state, reader));
    counts->tasks = state->task_count;
    counts->bad_edges = gbx_task_graph_bad_edges(state->graph);
    const char *runtime = gbx_reader_run(reader)->runtime;
    bool is_explicit =
        runtime && (!strcmp(runtime, "host_build_graph") || !strcmp(runtime, "aicpu_build_graph"));
    counts->has_edges = is_explicit && gbx_reader_get_origin(reader)->is_journal &&
                        gbx_reader_is_complete(reader) &&
                        gbx_reader_get_totals(reader)->losses == 0 &&
                        gbx_task_graph_bad_edges(state->graph) == 0;
    counts->is_complete = gbx_reader_is_complete(reader);
    return NULL;
}
