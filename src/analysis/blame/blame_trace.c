/* The inputs of a task, and which tasks wrote them: back through the graph, depth by depth. */
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/blame/internal.h"
#include "base/memory.h"

#define TRACING "looking for the writers of inputs"

typedef struct trace {
    gbx_blame *blame;
    gbx_memory_map *map; /* owners are accesses */
    uint64_t *writes;    /* accesses by the time they were complete */
    uint64_t write_count;
    uint64_t *totals;  /* bytes of the current input that each access wrote */
    uint64_t *touched; /* the accesses with a total */
    uint64_t touched_count;
    bool *is_seen;  /* tasks, by index in `tasks` */
    uint64_t *next; /* tasks of the next depth */
    uint64_t next_count;
    uint64_t *now;
    uint64_t now_count;
    gbx_blame_inputs *inputs;
    uint64_t capacity;
} trace;

static int compare_writes(const void *a, const void *b, void *context) {
    const gbx_audit_state *state = context;
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    const gbx_access *one = &state->accesses[left], *other = &state->accesses[right];
    if (one->time_ns != other->time_ns)
        return one->time_ns < other->time_ns ? -1 : 1;
    if (one->task != other->task)
        return one->task < other->task ? -1 : 1;
    return left < right ? -1 : left > right;
}

static gbx_status begin(trace *t) {
    gbx_audit_state *state = &t->blame->state;
    t->writes = malloc((state->access_count + 1) * sizeof *t->writes);
    t->is_seen = calloc(state->task_count + 1, sizeof *t->is_seen);
    t->next = malloc((state->task_count + 1) * sizeof *t->next);
    t->now = malloc((state->task_count + 1) * sizeof *t->now);
    t->totals = calloc(state->access_count + 1, sizeof *t->totals);
    t->touched = malloc((state->access_count + 1) * sizeof *t->touched);
    if (!t->writes || !t->totals || !t->touched || !t->is_seen || !t->next || !t->now)
        return gbx_fail_memory(TRACING);
    for (uint64_t i = 0; i < state->access_count; ++i)
        if (state->accesses[i].is_write)
            t->writes[t->write_count++] = i;
    if (t->write_count > 1)
        qsort_r(t->writes, t->write_count, sizeof *t->writes, compare_writes, state);
    return gbx_memory_map_create(GBX_OFFSETS_MOVE, &t->map);
}

static void visit(trace *t, uint64_t task) {
    if (t->is_seen[task])
        return;
    t->is_seen[task] = true;
    t->next[t->next_count++] = task;
}

/* Makes the map one of what tasks wrote before `reader` began, where it lies. */
static gbx_status map_writes(trace *t, const gbx_access *reader) {
    gbx_audit_state *state = &t->blame->state;
    gbx_memory_map_clear(t->map);
    for (uint64_t i = 0; i < t->write_count; ++i) {
        gbx_access *write = &state->accesses[t->writes[i]];
        gbx_byte_runs runs;
        gbx_byte_run run;
        if (write->begin >= reader->end || reader->begin >= write->end ||
            write->task == reader->task || gbx_blame_is_before(t->blame, reader->task, write->task))
            continue;
        GBX_TRY(gbx_access_fit(state, t->map, write));
        if (!write->is_followed) {
            gbx_memory_range hull = {write->begin, write->end, t->writes[i], 0};
            GBX_TRY(gbx_memory_map_set(t->map, &hull));
            continue;
        }
        GBX_TRY(gbx_access_runs(state, write, &runs));
        while (gbx_byte_runs_next(&runs, &run)) {
            gbx_memory_range range = {run.begin, run.end, t->writes[i], run.offset};
            if (run.begin < reader->end && reader->begin < run.end)
                GBX_TRY(gbx_memory_map_set(t->map, &range));
        }
    }
    return NULL;
}

/* Adds bytes that an access wrote; the sources of most bytes stay. */
static void add_source(trace *t, const gbx_access *reader, uint64_t owner, uint64_t bytes,
                       gbx_blame_input *input) {
    const gbx_audit_state *state = &t->blame->state;
    const gbx_access *write = &state->accesses[owner];
    visit(t, write->task);
    if (t->totals[owner] == 0) {
        t->touched[t->touched_count++] = owner;
        ++input->source_count;
    }
    t->totals[owner] += bytes;
    gbx_blame_source source = {.task = state->tasks[write->task].number,
                               .entry = write->entry,
                               .bytes = t->totals[owner],
                               .is_concurrent =
                                   !gbx_blame_is_before(t->blame, write->task, reader->task)};
    size_t kept = 0, at = 0;
    while (kept < GBX_BLAME_SOURCES && input->sources[kept].bytes > 0)
        ++kept;
    while (at < kept && input->sources[at].entry != source.entry)
        ++at;
    if (at == kept && kept == GBX_BLAME_SOURCES) {
        at = GBX_BLAME_SOURCES - 1;
        if (input->sources[at].bytes >= source.bytes)
            return;
    }
    for (; at > 0 && input->sources[at - 1].bytes < source.bytes; --at)
        input->sources[at] = input->sources[at - 1];
    input->sources[at] = source;
}

static gbx_status find_sources(trace *t, const gbx_access *reader, gbx_blame_input *input) {
    gbx_byte_runs runs;
    gbx_byte_run run;
    GBX_TRY(gbx_access_runs(&t->blame->state, reader, &runs));
    while (gbx_byte_runs_next(&runs, &run)) {
        for (uint64_t at = run.begin; at < run.end;) {
            gbx_memory_range range;
            bool is_found = gbx_memory_map_find(t->map, at, &range) && range.begin < run.end;
            uint64_t begin = !is_found ? run.end : range.begin > at ? range.begin : at;
            uint64_t end = !is_found ? run.end : range.end < run.end ? range.end : run.end;
            input->unwritten += begin - at;
            if (is_found)
                add_source(t, reader, range.owner, end - begin, input);
            at = end;
        }
        input->bytes += run.end - run.begin;
    }
    while (t->touched_count > 0)
        t->totals[t->touched[--t->touched_count]] = 0;
    return NULL;
}

static gbx_status add_input(trace *t, gbx_access *reader, uint32_t depth) {
    gbx_audit_state *state = &t->blame->state;
    gbx_blame_inputs *inputs = t->inputs;
    gbx_entry entry;
    gbx_statistics statistics;
    if (inputs->count == GBX_BLAME_INPUTS_MAX) {
        inputs->has_more = true;
        return NULL;
    }
    GBX_TRY(gbx_array_reserve(&inputs->inputs, &t->capacity, inputs->count + 1, TRACING));
    gbx_blame_input *input = &inputs->inputs[inputs->count++];
    *input = (gbx_blame_input){.depth = depth,
                               .task = state->tasks[reader->task].number,
                               .entry = reader->entry,
                               .is_unknown = !reader->is_followed};
    GBX_TRY(gbx_entries_at(state->entries, reader->entry, &entry));
    GBX_TRY(gbx_entry_statistics(&entry, gbx_entries_reader(state->entries), &statistics,
                                 &input->has_counts));
    if (input->has_counts) {
        input->nan_count = statistics.nan_count;
        input->inf_count = statistics.inf_count;
    }
    if (input->is_unknown)
        return NULL;
    GBX_TRY(map_writes(t, reader));
    return find_sources(t, reader, input);
}

static gbx_status add_task(trace *t, uint64_t index, uint32_t depth) {
    gbx_audit_state *state = &t->blame->state;
    const gbx_audit_task *task = &state->tasks[index];
    for (uint64_t i = task->first; i < task->first + task->count; ++i)
        if (!state->accesses[i].is_write)
            GBX_TRY(add_input(t, &state->accesses[i], depth));
    return NULL;
}

static gbx_status run(trace *t, uint32_t depth, gbx_blame_progress progress, void *context) {
    for (uint32_t level = 1; level <= depth && t->next_count > 0; ++level) {
        uint64_t *swapped = t->now;
        t->now = t->next;
        t->now_count = t->next_count;
        t->next = swapped;
        t->next_count = 0;
        for (uint64_t i = 0; i < t->now_count && !t->inputs->has_more; ++i) {
            if (progress)
                progress(context, i, t->now_count);
            GBX_TRY(add_task(t, t->now[i], level));
        }
    }
    return NULL;
}

gbx_status gbx_blame_trace(gbx_blame *blame, const uint64_t *tasks, size_t task_count,
                           uint32_t depth, gbx_blame_progress progress, void *context,
                           gbx_blame_inputs *out_inputs) {
    trace t = {.blame = blame, .inputs = out_inputs};
    *out_inputs = (gbx_blame_inputs){0};
    gbx_status status = begin(&t);
    for (size_t i = 0; i < task_count && !status; ++i)
        visit(&t, gbx_task_graph_place(blame->state.graph, tasks[i]));
    if (!status)
        status = run(&t, depth, progress, context);
    gbx_memory_map_destroy(t.map);
    free(t.writes);
    free(t.totals);
    free(t.touched);
    free(t.is_seen);
    free(t.next);
    free(t.now);
    if (status)
        gbx_blame_inputs_free(out_inputs);
    return status;
}

void gbx_blame_inputs_free(gbx_blame_inputs *inputs) {
    free(inputs->inputs);
    *inputs = (gbx_blame_inputs){0};
}
