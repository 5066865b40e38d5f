#include "analysis/audit/audit.h"

#include <stdlib.h>

#include "analysis/audit/internal.h"

static const gbx_name kinds[GBX_AUDIT_KIND_COUNT] = {
    [GBX_AUDIT_UNDECLARED_WRITE] = {"undeclared_write", NULL, "undeclared writes"},
    [GBX_AUDIT_READ_TOO_EARLY] = {"read_too_early", NULL, "reads too early"},
    [GBX_AUDIT_OVERLAPPING_WRITES] = {"overlapping_writes", NULL, "overlapping writes"},
};
const gbx_name_set gbx_audit_kinds = {.rows = kinds, .count = GBX_AUDIT_KIND_COUNT};

static const gbx_name reasons[] = {
    [GBX_SUSPECT_HAS_IT] = {"argument_there", NULL, NULL},
    [GBX_SUSPECT_ENDS_BEFORE] = {"output_ends_before", NULL, NULL},
    [GBX_SUSPECT_BEGINS_AFTER] = {"output_begins_after", NULL, NULL},
    [GBX_SUSPECT_RAN] = {"ran", NULL, NULL},
};
const gbx_name_set gbx_audit_reasons = {.rows = reasons, .count = GBX_SUSPECT_RAN + 1};

/* By the later of both tasks in graph order: what it is about has happened by then. */
static int compare_findings(const void *a, const void *b, void *context) {
    const gbx_audit_finding *left = a;
    const gbx_audit_finding *right = b;
    const gbx_graph *graph = context;
    uint64_t keys[2][5];
    const gbx_audit_finding *both[2] = {left, right};
    for (int i = 0; i < 2; ++i) {
        uint64_t first = gbx_graph_place(graph, both[i]->first.task);
        uint64_t second = gbx_graph_place(graph, both[i]->second.task);
        keys[i][0] = first > second ? first : second;
        keys[i][1] = first > second ? second : first;
        keys[i][2] = both[i]->second.entry;
        keys[i][3] = both[i]->first.entry;
        keys[i][4] = both[i]->address;
    }
    for (int i = 0; i < 5; ++i)
        if (keys[0][i] != keys[1][i])
            return keys[0][i] < keys[1][i] ? -1 : 1;
    return 0;
}

static gbx_status run(gbx_audit_state *state) {
    GBX_TRY(gbx_audit_gather(state));
    GBX_TRY(gbx_audit_find_races(state));
    GBX_TRY(gbx_audit_replay(state));
    GBX_TRY(gbx_audit_report_races(state));
    if (state->audit->finding_count > 1)
        qsort_r(state->audit->findings, state->audit->finding_count, sizeof *state->audit->findings,
                compare_findings, (void *)state->graph);
    return NULL;
}

gbx_status gbx_audit_run(gbx_entries *entries, const gbx_graph *graph, gbx_audit_progress progress,
                         void *context, gbx_audit *out_audit) {
    gbx_audit_state state = {.entries = entries,
                             .graph = graph,
                             .progress = progress,
                             .context = context,
                             .audit = out_audit};
    *out_audit = (gbx_audit){0};
    gbx_status status = run(&state);
    free(state.tasks);
    free(state.accesses);
    free(state.races);
    free(state.races_by_second);
    if (status)
        gbx_audit_free(out_audit);
    return status;
}

void gbx_audit_free(gbx_audit *audit) {
    free(audit->findings);
    *audit = (gbx_audit){0};
}

uint64_t gbx_audit_left_out(const gbx_audit_counts *counts) {
    uint64_t left_out = counts->unfollowed + counts->in_flight;
    for (int gap = 0; gap < GBX_GAP_COUNT; ++gap)
        left_out += counts->not_compared[gap];
    return left_out;
}

gbx_audit_lack gbx_audit_find_lack(const gbx_audit_counts *counts) {
    if (!counts->is_complete)
        return GBX_AUDIT_LACKS_END;
    if (counts->missing_tasks == UINT64_MAX)
        return GBX_AUDIT_LACKS_ARGUMENTS;
    return counts->missing_tasks > 0 ? GBX_AUDIT_LACKS_SOME_OUTPUTS : GBX_AUDIT_LACKS_NOTHING;
}

void gbx_audit_missing_edge(const gbx_audit_finding *finding, uint64_t *out_from,
                            uint64_t *out_to) {
    *out_from = finding->is_read_first ? finding->second.task : finding->first.task;
    *out_to = finding->is_read_first ? finding->first.task : finding->second.task;
}
