/*
 * Runs cases of a scene: fills the inputs, runs the graph on a chip, and compares the outputs with
 * the golden. Uses one thread, which also calls the observer.
 */
#ifndef GBX_SCENE_RUNNER_H
#define GBX_SCENE_RUNNER_H

#include <glassbox/runtime.h>

#include "base/hash.h"
#include "scene/scene.h"
#include "tensor/compare/compare.h"

typedef struct gbx_scene_options {
    gbx_chip_config chip;
    /* The runner itself sets progress, and the dump's directory, scene, case and round. */
    gbx_call_config call;
    const char *output;  /* where dumps go (store/run/output_directory.h); NULL: below outputs/ */
    const char *runtime; /* NULL: the default */
    bool skips_golden;
    uint32_t rounds; /* how often each case runs; 0: once */
} gbx_scene_options;

typedef enum gbx_verdict {
    GBX_VERDICT_OK = 0,
    GBX_VERDICT_DIFFERS = 1,
    GBX_VERDICT_FAILED = 2,
    GBX_VERDICT_NOT_COMPARED = 3 /* no golden, or it was skipped */
} gbx_verdict;

typedef struct gbx_output_result {
    const gbx_scene_arg *arg;
    gbx_hash128 hash; /* of the payload */
    bool is_compared; /* with the golden */
    gbx_comparison comparison;
} gbx_output_result;

/* What a kernel did outside of its arguments, and its sentence. */
typedef struct gbx_scene_finding {
    gbx_run_finding finding;
    char text[2048];
} gbx_scene_finding;

/* One run of one case; borrowed for the call of the observer. */
typedef struct gbx_round_result {
    const gbx_scene_case *of_case;
    uint32_t round; /* 1 first */
    gbx_verdict verdict;
    const char *error; /* one or more sentences; NULL when nothing failed */
    bool is_refused;   /* the graph, a kernel or the scene is wrong, or a file; the error says so */
    const char *dump;  /* its directory; NULL without a dump */
    gbx_dump_totals totals;
    /* With loose signatures: how many broke, and the first of each sort, as in gbx_call_result. */
    uint64_t signature_warnings;
    uint32_t signature_sentence_count;
    char signature_sentences[GBX_MAX_SIGNATURE_SENTENCES][GBX_SIGNATURE_SENTENCE_BYTES];
    uint64_t tasks;
    double seconds; /* on the chip, by its clock */
    const gbx_output_result *outputs;
    size_t output_count; /* 0 when the run failed */
    uint64_t finding_count;
    const gbx_scene_finding *findings; /* the first of them */
    size_t findings_kept;
} gbx_round_result;

/* Callbacks; each may be NULL. */
typedef struct gbx_scene_observer {
    void *context;
    /* A phase that may take long begins; `of_case` is NULL before the first case. */
    void (*phase)(void *context, const gbx_scene_case *of_case, const char *what);
    /* Tasks that the run has completed so far. */
    void (*progress)(void *context, uint64_t tasks);
    void (*result)(void *context, const gbx_round_result *result);
} gbx_scene_observer;

/*
 * Runs `cases` in turn. A case that fails is a result like others, and the rest still run, on a new
 * chip where the device failed. A dump that lacks records, or a filter that matched nothing, is an
 * error in addition to the verdict. *out_exit_code is that of the command; the first that applies
 * of 2, 3, 4, 1. Fails, with nothing run, when the scene has no orchestration for the runtime, a
 * filter is wrong, something does not compile or no chip can be opened.
 */
GBX_MUST_USE gbx_status gbx_scene_run(const gbx_scene *scene, const gbx_scene_case *const *cases,
                                      size_t case_count, const gbx_scene_options *options,
                                      const gbx_scene_observer *observer, int *out_exit_code);

#endif
