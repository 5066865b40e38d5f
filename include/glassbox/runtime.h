/* Running task graphs on an open chip, with any of the runtimes.
 */
#ifndef GLASSBOX_RUNTIME_H
#define GLASSBOX_RUNTIME_H

#include <glassbox/chip.h>
#include <glassbox/orchestration.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names and descriptions of the runtimes by index; NULL past the last. The first is the default. */
GBX_API const char *gbx_runtime_name(uint32_t index);
GBX_API const char *gbx_runtime_description(uint32_t index);

/* A tensor argument of a run, in host memory. */
typedef struct gbx_run_tensor {
    const char *name;  /* for messages and dumps */
    gbx_tensor tensor; /* row-major and contiguous; `data` is a host address */
    gbx_role role;     /* inputs are copied to the chip, outputs back from it, inouts both ways */
} gbx_run_tensor;

/*
 * An orchestration and its arguments, all borrowed until the run has ended.
 * Exactly one of source, shared_object and function is set.
 */
typedef struct gbx_run {
    const char *runtime;       /* NULL: the default */
    const char *source;        /* a C file, compiled and cached like kernels */
    const char *shared_object; /* a ready .so */
    gbx_orchestrate_function
        function;            /* of this program; needs GBX_DEVICE_THREAD or host_build_graph */
    const char *entry;       /* symbol in source or shared_object; NULL: "orchestrate" */
    gbx_run_tensor *tensors; /* up to GBX_MAX_RUN_TENSORS */
    uint32_t tensor_count;
    const uint64_t *scalars; /* up to GBX_MAX_RUN_SCALARS */
    uint32_t scalar_count;
    /* For dumps: one for each scalar; each may be NULL. */
    const char *const *scalar_names;
    const gbx_dtype *scalar_dtypes;
} gbx_run;

/*
 * Builds the graph, runs it and waits for its end; the outputs are then in host memory. `config`
 * and `out_result` may be NULL. An error in the graph fails with GBX_BAD_GRAPH, whose message names
 * the task; the chip stays usable. Failures of the device are those of gbx_chip_call.
 */
GBX_API GBX_MUST_USE gbx_status gbx_chip_run(gbx_chip *chip, const gbx_run *run,
                                             const gbx_call_config *config,
                                             gbx_call_result *out_result);

/*
 * A sentence for a finding of gbx_call_result, with the names of kernels and arguments, cut to
 * `bytes`; 2048 are always enough. `run` may be NULL.
 */
GBX_API void gbx_finding_describe(const gbx_chip *chip, const gbx_run *run,
                                  const gbx_run_finding *finding, char *out_text, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
