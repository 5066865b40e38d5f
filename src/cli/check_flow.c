#include "cli/check_flow.h"

#include <glassbox/orchestration.h>

/* Where tasks are few, starting more processes takes longer than it saves. */
enum { TASKS_OF_ONE = 32 };

/* A task with more than this is checked alone, so that memory holds one such at a time. */
#define LARGE_BYTES (UINT64_C(64) << 20)

gbx_status gbx_check_flow_open(gbx_check_flow *flow, const gbx_replay_engine_config *config,
                               uint64_t task_count) {
    size_t wanted = task_count < TASKS_OF_ONE ? 1 : GBX_CHECK_FLOW_MAX;
    for (; flow->place_count < wanted; ++flow->place_count)
        GBX_TRY(gbx_replay_engine_open(config, &flow->places[flow->place_count].engine));
    return NULL;
}

/* A reference that hung would hang again, once for each task of its kernel. */
static void give_up(gbx_references *references, uint32_t func_id) {
    for (size_t i = 0; i < references->count; ++i)
        if (references->items[i].func_id == func_id) {
            references->items[i].object = NULL;
            references->items[i].why_not = "hung in an earlier task, and was not run again";
        }
}

static gbx_status end_first(gbx_check_flow *flow) {
    gbx_check_place *place = &flow->places[flow->first];
    flow->first = (flow->first + 1) % flow->place_count;
    --flow->active;
    GBX_TRY(gbx_check_end(place->job));
    if (place->result.hung_func_id != GBX_NO_KERNEL)
        give_up(flow->references, place->result.hung_func_id);
    GBX_TRY(gbx_check_report_add(flow->report, place->task, &place->result));
    gbx_progress_tasks(flow->progress, flow->report->count + flow->report->left_out);
    return NULL;
}

gbx_status gbx_check_flow_finish(gbx_check_flow *flow) {
    while (flow->active > 0)
        GBX_TRY(end_first(flow));
    return NULL;
}

static gbx_status begin(gbx_check_flow *flow, gbx_check_place *place) {
    return gbx_check_begin(place->engine, flow->report->dump->entries, place->task,
                           flow->references->items, flow->references->count, &place->result,
                           &place->job);
}

/* What it took stays with its engine until that is used again: it is the next to be used. */
static gbx_status check_alone(gbx_check_flow *flow, size_t place) {
    GBX_TRY(gbx_check_flow_finish(flow));
    flow->first = place;
    return NULL;
}

/* What is wrong with an earlier task is told in place of what is wrong with this one. */
gbx_status gbx_check_flow_add(gbx_check_flow *flow, uint64_t task) {
    if (flow->active == flow->place_count)
        GBX_TRY(end_first(flow));
    size_t number = (flow->first + flow->active) % flow->place_count;
    gbx_check_place *place = &flow->places[number];
    place->task = task;
    gbx_status status = begin(flow, place);
    if (status)
        return gbx_status_first(gbx_check_flow_finish(flow), status);
    ++flow->active;
    bool is_large = gbx_check_job_bytes(place->job) > LARGE_BYTES;
    return is_large ? check_alone(flow, number) : NULL;
}

void gbx_check_flow_close(gbx_check_flow *flow) {
    for (; flow->active > 0; --flow->active) {
        gbx_status_free(gbx_check_end(flow->places[flow->first].job));
        flow->first = (flow->first + 1) % flow->place_count;
    }
    for (size_t i = 0; i < flow->place_count; ++i)
        gbx_replay_engine_close(flow->places[i].engine);
}
