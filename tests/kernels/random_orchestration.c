/* Builds a random graph from its plan. */
#include "random_graph.h"

int orchestrate(gbx_orchestration *o, const gbx_run_args *run);

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    return random_orchestrate(o, run);
}
