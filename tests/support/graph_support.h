/* Runs the graphs of tests/kernels/orchestrations.c on any chip and any runtime. */
#ifndef GBX_TESTS_GRAPH_SUPPORT_H
#define GBX_TESTS_GRAPH_SUPPORT_H

#include "chip_support.h"
#include "kernels/orchestrations.h"

/* A runtime, and how it is used. */
typedef struct graph_mode {
    const char *runtime;
    uint32_t on; /* as orchestrations name it */
    gbx_build_mode build;
} graph_mode;

enum { HOST_MODE = 0, CONCURRENT_MODE, SEQUENTIAL_MODE, TENSORMAP_MODE, GRAPH_MODES };
extern const graph_mode graph_modes[GRAPH_MODES];

/* One run, its cells and how it ended. */
typedef struct graph_run {
    const graph_mode *mode;
    const char *entry;
    uint64_t before;  /* correct tasks before the wrong one */
    uint64_t variant; /* the case of the entry */
    uint64_t count;
    gbx_call_config config;
    int64_t cells[CELLS];
    gbx_call_result result;
} graph_run;

graph_run graph_of(int mode, const char *entry, uint64_t before, uint64_t variant, uint64_t count);

/* As a function pointer on a chip in a thread, else as a shared object. */
gbx_status run_graph(gbx_chip *chip, graph_run *run);

/* A chip with all kernels that orchestrations use; `gm_bytes` 0 for little memory. */
gbx_chip *open_graph_chip(const chip_variant *variant, uint64_t gm_bytes);

/* What a step computes, and what `count` steps of a cell do: with numbers first, first +
 * stride... */
int64_t stepped(int64_t value, uint64_t addend);
int64_t stepped_often(int64_t value, uint64_t first, uint64_t stride, uint64_t count);

/* The cells of the prelude after `before` tasks; each cell starts with its index. */
void assert_prelude_is_done(const graph_run *run);

/* A correct graph on this chip gives the right value, on one runtime or on all. */
void assert_chip_runs_graph(gbx_chip *chip, int mode);
void assert_chip_runs_graphs(gbx_chip *chip);

#endif
