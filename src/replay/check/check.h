/*
 * Is a task right for its own inputs? Its reference kernels run on the inputs that the dump holds,
 * and what they leave is compared with the outputs that the dump holds.
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
    const char *object; /* shared object of the reference; NULL where the kernel has none */
    const char
        *why_not; /* where it has none: "hung in an earlier task"; NULL: the scene names none */
    double rtol;  /* negative where the scene does not say, like the next */
    double atol;
} gbx_check_reference;

typedef struct gbx_check_output {
    uint32_t argument;         /* of the task */
    uint32_t slot;             /* of it, in args[], like all up to the tensor */
    const char *name;          /* NULL where it has none; lives as long as the reader */
    gbx_tensor tensor;         /* shape and dtype */
    gbx_comparison comparison; /* got: the dump; want: the reference. Without what is not_written */
    uint64_t not_written;      /* elements that the reference does not write: not compared */
} gbx_check_output;

typedef enum gbx_check_verdict {
    GBX_CHECK_RIGHT = 0,
    GBX_CHECK_INTRODUCED = 1, /* wrong for its own inputs */
    GBX_CHECK_NOT_CHECKED = 2
} gbx_check_verdict;

typedef struct gbx_check_result {
    gbx_check_verdict verdict;
    char reason[1024];                             /* of what is not checked: one sentence */
    gbx_check_output outputs[GBX_MAX_TENSOR_ARGS]; /* outputs and inouts that were compared */
    uint32_t output_count;
    uint32_t worst_output;    /* of INTRODUCED: the first of them that is wrong */
    uint32_t missing_outputs; /* that the dump does not hold whole: not compared */
    uint32_t hung_func_id;    /* the kernel whose reference hung; UINT32_MAX for none */
    uint64_t stray_bytes;     /* that references changed outside of outputs and inouts */
    uint64_t stray_address;   /* of the first */
    bool stray_is_unknown;    /* tensors are too large to look for them: the two above are 0 */
} gbx_check_result;

/*
 * Of several kernels of a mix, the loosest tolerance counts; where a scene gives one of rtol and
 * atol the other is 0, where it gives none the default of the dtype counts.
 *
 * What the reference writes of an output is found out by poison: an element that holds it after two
 * runs with different poisons is not written. Inouts hold their inputs, and are compared whole.
 *
 * INTRODUCED is what is wrong in any output that is there. Otherwise NOT_CHECKED is a task whose
 * kernels have not all a reference, whose inputs or outputs are missing in the dump, that has no
 * outputs or did not complete, or whose reference crashes, hangs, leaves something else when it
 * runs again, or writes no element of an output. A wrong task of which the dump holds something
 * that has not its hash any more is NOT_CHECKED, too: a disk may have done it.
 * Failures are those of the engine (a reference that cannot be loaded) and of reading the dump.
 */
GBX_MUST_USE gbx_status gbx_check_task(gbx_replay_engine *engine, gbx_entries *entries,
                                       uint64_t task, const gbx_check_reference *references,
                                       size_t reference_count, gbx_check_result *out_result);

/*
 * The same in two steps: the references run while the caller does something else, such as to begin
 * the next task with another engine. All that is given has to live until the end, which frees the
 * job whatever it returns; there is none where _begin fails.
 */
typedef struct gbx_check_job gbx_check_job;
GBX_MUST_USE gbx_status gbx_check_begin(gbx_replay_engine *engine, gbx_entries *entries,
                                        uint64_t task, const gbx_check_reference *references,
                                        size_t reference_count, gbx_check_result *out_result,
                                        gbx_check_job **out_job);
GBX_MUST_USE gbx_status gbx_check_end(gbx_check_job *job);
uint64_t gbx_check_job_bytes(const gbx_check_job *job); /* of all tensors that it restores */

/*
 * The same for what the engine has just run, in place of what the dump holds: is another kernel
 * right? `got` is the payload of each argument, NULL where it is not asked for.
 */
GBX_MUST_USE gbx_status gbx_check_payloads(gbx_replay_engine *engine, gbx_entries *entries,
                                           const gbx_replay_task *task, const void *const *got,
                                           const gbx_check_reference *references,
                                           size_t reference_count, gbx_check_result *out_result);

/* --- the reference kernels of the scene that a dump was made with, compiled --- */

typedef struct gbx_references {
    gbx_scene *scene;
    gbx_check_reference *items; /* one for each kernel of the scene */
    char **objects;
    size_t count;
} gbx_references;

/* What stands in the way of using a scene. */
typedef enum gbx_scene_trouble {
    GBX_SCENE_USABLE = 0,
    GBX_SCENE_UNKNOWN = 1, /* run.json does not tell where it is, or it is gone */
    GBX_SCENE_FOREIGN =
        2,               /* it lies in the dump, or others can write it: the user has to name it */
    GBX_SCENE_OTHER = 3, /* it is not that of the dump */
    GBX_SCENE_CHANGED = 4, /* it was, and its kernels have other arguments now */
    GBX_SCENE_BROKEN = 5   /* it cannot be read, or a reference does not compile */
} gbx_scene_trouble;

/*
 * `scene` is what the user named, NULL: where run.json says that the scene was (`kept` may be NULL,
 * where there is no run.json). Fails with one sentence where there is none, where it is not the
 * scene of the dump (its kernels have other names or signatures at the same func_id, or none of its
 * kernels is one of the dump's), or where a reference does not compile. A scene that lies inside of
 * the dump, or that others can write, is used only when the user names it. *out_trouble tells which
 * of it was so; what to do about it, the caller adds to the sentence.
 *
 * References are compiled with the flags of their kernels, which headers and macros that both use
 * may need, but always with exact arithmetic: flags that loosen it are taken back.
 */
GBX_MUST_USE gbx_status gbx_references_open(const char *scene, const char *dump_directory,
                                            const gbx_kept_run *kept, const gbx_run_info *run,
                                            gbx_references **out_references,
                                            gbx_scene_trouble *out_trouble);
void gbx_references_close(gbx_references *references); /* takes NULL */

#endif
