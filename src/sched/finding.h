/*
 * Where device code reports a finding (<glassbox/finding.h>). A run with a dump or a guard has a
 * sink: in gbx_probe_request for probes, in gbx_graph for builders. Without either it is NULL.
 *
 *     gbx_run_finding finding = {.kind = GBX_RUN_FINDING_ARGUMENTS,
 *                                .place = GBX_PLACE_ARGUMENTS,
 *                                .finder = task->id,
 *                                .address = ..., .bytes = ..., .first = ..., .changed = ...,
 *                                .owner_task = victim->id, .owner_func = ...};
 *     findings->report(findings->context, &finding, moment);
 */
#ifndef GBX_SCHED_FINDING_H
#define GBX_SCHED_FINDING_H

#include <assert.h>
#include <stddef.h>

#include <glassbox/finding.h>
#include <glassbox/orchestration.h>

static_assert(sizeof(gbx_run_finding_task) == 16, "layout of a finding");
static_assert(offsetof(gbx_run_finding, index) == 64, "layout of a finding");
static_assert(offsetof(gbx_run_finding, candidates) == 128, "layout of a finding");
static_assert(sizeof(gbx_run_finding) == 256, "layout of a finding");
static_assert(GBX_FINDING_NO_TASK == GBX_NO_TASK && GBX_FINDING_NO_KERNEL == GBX_NO_KERNEL,
              "one name for none");

typedef struct gbx_finding_sink {
    void *context;
    /*
     * Copies it to the host, at once; sets time_ns. `moment`: a moment at which the victim was
     * known to be right (below); the tasks that ran since are added as candidates after those that
     * are there. Ends the run where the guard's mode is to stop. Any thread of the chip.
     */
    void (*report)(void *context, const gbx_run_finding *finding, uint64_t moment);
    /* Now, for `report`: take it before looking at memory that turns out to be right. */
    uint64_t (*moment)(void *context);
} gbx_finding_sink;

#endif
