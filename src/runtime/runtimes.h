/* The three runtimes: what each is on the host and on the chip. */
#ifndef GBX_RUNTIME_RUNTIMES_H
#define GBX_RUNTIME_RUNTIMES_H

#include <glassbox/runtime.h>

#include "base/status.h"

struct gbx_builder;
struct gbx_chip_listener;

/* A run, with its orchestration found: a function of this process, or a shared object. */
typedef struct gbx_runtime_request {
    gbx_chip *chip;
    const gbx_run *run;
    const gbx_call *call; /* one task, with an empty `run`; else NULL */
    const gbx_call_config *config;
    const char *object; /* absolute path, or NULL with run->function */
    const char *entry;
    struct gbx_runtime const *runtime;
    const struct gbx_chip_listener *listener; /* NULL: no dump */
} gbx_runtime_request;

typedef struct gbx_runtime {
    const char *name;
    const char *description;
    uint32_t entry; /* of its program on the chip */
    const struct gbx_builder *builder;
    gbx_status (*run)(const gbx_runtime_request *request, gbx_call_result *out_result);
} gbx_runtime;

/* The runtime with this name, or the default for NULL. Returns NULL for an unknown name. */
const gbx_runtime *gbx_runtime_find(const char *name);

/* Each in its own folder. */
extern const gbx_runtime gbx_host_build_graph;
extern const gbx_runtime gbx_aicpu_build_graph;
extern const gbx_runtime gbx_tensormap_and_ringbuffer;

/* The builder of an entry of the chip; NULL for an unknown entry. */
const struct gbx_builder *gbx_runtime_builder(uint32_t entry);

/* Runs request->call as a graph of one task, with host_build_graph. */
GBX_MUST_USE gbx_status gbx_runtime_call(const gbx_runtime_request *request,
                                         gbx_call_result *out_result);

/* --- what runtimes share on the host --- */

/* Launches a graph and waits for its end. Fills in what all launches share. */
struct gbx_graph_launch;
GBX_MUST_USE gbx_status gbx_runtime_launch(const gbx_runtime_request *request,
                                           struct gbx_graph_launch *launch,
                                           gbx_call_result *out_result);

/* The most that a heap ring takes by default. */
#define GBX_MAX_DEFAULT_HEAP (UINT64_C(4) << 30)

/* Global memory that is left once the run's tensors are there; fails when they do not fit. */
GBX_MUST_USE gbx_status gbx_runtime_free_memory(const gbx_runtime_request *request,
                                                uint64_t *out_bytes);

/*
 * A run whose orchestration is on the chip: copies the tensors in, launches, copies the outputs
 * back. The caller has set the fields of its runtime in `launch`; this allocates storage_bytes and
 * heap_bytes.
 */
GBX_MUST_USE gbx_status gbx_runtime_run_on_chip(const gbx_runtime_request *request,
                                                struct gbx_graph_launch *launch,
                                                gbx_call_result *out_result);

#endif
