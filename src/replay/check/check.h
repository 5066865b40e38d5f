/*
 * Is a task right for its own inputs? Runs its reference kernels on the inputs in the dump, and
 * compares the results with the outputs in the dump.
 */
#ifndef GBX_REPLAY_CHECK_CHECK_H
#define GBX_REPLAY_CHECK_CHECK_H

#include "replay/engine/engine.h"
#include "scene/scene.h"
#include "store/run/kept_run.h"
#include "tensor/compare/compare.h"

/* The reference of one kernel. */
typedef struct gbx_check_reference {
    uint32_t func_id;
    const char *object; /* shared object of the reference; NULL if the kernel has none */
    double rtol;        /* negative if the scene does not have it, like the next */
    double atol;
} gbx_check_reference;

typedef struct gbx_check_output {
    uint32_t argument;         /* of the task */
    uint32_t slot;             /* of the argument, in args[] */
    const char *name;          /* NULL if it has none; lives as long as the reader */
    gbx_tensor tensor;         /* shape and dtype */
    gbx_comparison comparison; /* got: the dump; want: the reference; without not_written */
    uint64_t not_written;      /* elements that the reference does not write: not compared */
} gbx_check_output;

typedef enum gbx_check_verdict {
    GBX_CHECK_RIGHT = 0,
    GBX_CHECK_INTRODUCED = 1, /* wrong for its own inputs */
    GBX_CHECK_NOT_CHECKED = 2,
    GBX_CHECK_OVERWRITTEN = 3,  /* wrong in the dump, but its kernel leaves the right values, and
                                   another task wrote there */
    GBX_CHECK_NOT_REPEATED = 4, /* likewise, but no task is known to have written there */
    GBX_CHECK_VERDICT_COUNT = 5
} gbx_check_verdict;

typedef struct gbx_check_result {
    gbx_check_verdict verdict;
    char reason[1024];        /* of NOT_CHECKED: one sentence */
    uint32_t output_count;    /* of `outputs` */
    uint32_t worst_output;    /* of INTRODUCED: the first output that is wrong */
    uint32_t missing_outputs; /* not complete in the dump: not compared */
    uint64_t stray_bytes;     /* that references changed outside of outputs and inouts */
    uint64_t stray_address;   /* of the first one */
    bool stray_is_unknown;    /* tensors are too large to search: the two above are 0 */
    bool is_damaged;          /* of NOT_CHECKED: its data changed on disk */
    gbx_check_output outputs[GBX_MAX_TENSOR_ARGS]; /* compared outputs and inouts */
} gbx_check_result;

/*
 * For a mix of kernels the loosest tolerance counts. If a scene gives only one of rtol and atol,
 * the other is 0; if it gives none, the default of the dtype counts.
 *
 * An element of an output that still holds the poison after two runs with different poisons was not
 * written by the reference. Inouts hold their inputs, and are compared completely.
 *
 * A task is INTRODUCED if any output in the dump is wrong. Otherwise it is NOT_CHECKED if a kernel
 * has no reference, if inputs or outputs are missing in the dump, if it has no outputs or did not
 * complete, or if its reference crashes, hangs, gives different results when run again, or writes
 * no element of an output. A wrong task with data in the dump whose hash does not match is
 * NOT_CHECKED, too: the disk may be the cause. Failures are those of the engine (a reference that
 * cannot be loaded) and of reading the dump.
 */
GBX_MUST_USE gbx_status gbx_check_task(gbx_replay_engine *engine, gbx_entries *entries,
                                       uint64_t task, const gbx_check_reference *references,
                                       size_t reference_count, gbx_check_result *out_result);

/*
 * The same in steps, for many tasks at a time: _prepare sets the result, or is_asked and a request
 * for the engine; then _conclude or, for a request that the engine refuses, _refuse sets the
 * result. The caller frees the job, even after a failure; it must not move in between.
 */
typedef struct gbx_check_job {
    gbx_entries *entries;
    gbx_replay_task task;
    bool is_asked;
    gbx_replay_request request;
    gbx_tolerance tolerances[GBX_REPLAY_MAX_ARGUMENTS];
    gbx_check_result result;
} gbx_check_job;

void gbx_check_job_init(gbx_check_job *job); /* before _prepare; most of it is set there */
GBX_MUST_USE gbx_status gbx_check_prepare(gbx_check_job *job, gbx_entries *entries, uint64_t task,
                                          const gbx_check_reference *references,
                                          size_t reference_count);
GBX_MUST_USE gbx_status gbx_check_refuse(gbx_check_job *job, gbx_status status);
GBX_MUST_USE gbx_status gbx_check_conclude(gbx_check_job *job, const gbx_replay_outcome *outcome);
void gbx_check_job_free(gbx_check_job *job);

/*
 * The same for the outputs of a replay instead of those in the dump: is another kernel right? `got`
 * has the payload of each argument, NULL for those not to check.
 */
GBX_MUST_USE gbx_status gbx_check_payloads(gbx_replay_engine *engine, gbx_entries *entries,
                                           const gbx_replay_task *task, const void *const *got,
                                           const gbx_check_reference *references,
                                           size_t reference_count, gbx_check_result *out_result);

/* --- the compiled reference kernels of a dump's scene --- */

typedef struct gbx_references {
    gbx_scene *scene;
    gbx_check_reference *items; /* one for each kernel of the scene */
    char **objects;
    size_t count;
} gbx_references;

/* Why a scene cannot be used. */
typedef enum gbx_scene_trouble {
    GBX_SCENE_USABLE = 0,
    GBX_SCENE_UNKNOWN = 1, /* run.json does not name it, or it no longer exists */
    GBX_SCENE_FOREIGN = 2, /* it lies in the dump, or others can write it: the user must name it */
    GBX_SCENE_OTHER = 3,   /* it is not the scene of the dump */
    GBX_SCENE_CHANGED = 4, /* its kernels have other arguments than in the dump */
    GBX_SCENE_BROKEN = 5   /* it cannot be read, or a reference does not compile */
} gbx_scene_trouble;

/*
 * `scene` is the path that the user named; NULL for the one in run.json (`kept`, NULL if there is
 * none). Fails if there is no scene, if it is not the scene of the dump (its kernels have other
 * names or signatures at the same func_id, or no kernel is in both), or if a reference does not
 * compile. A scene inside the dump, or writable by others, is used only if the user names it.
 * *out_trouble says which of these applies; the caller adds advice to the sentence.
 *
 * References are compiled with the flags of their kernels, because shared headers and macros may
 * need them, but always with exact arithmetic: flags that loosen it are reverted.
 */
GBX_MUST_USE gbx_status gbx_references_open(const char *scene, const char *dump_directory,
                                            const gbx_kept_run *kept, const gbx_run_info *run,
                                            gbx_references **out_references,
                                            gbx_scene_trouble *out_trouble);
void gbx_references_close(gbx_references *references); /* takes NULL; also all zero, from calloc */

#endif
