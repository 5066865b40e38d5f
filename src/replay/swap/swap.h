/* Runs a task again with another kernel: what it changes, and whether the result is right. */
#ifndef GBX_REPLAY_SWAP_SWAP_H
#define GBX_REPLAY_SWAP_SWAP_H

#include "replay/replay_result.h"
#include "store/run/kept_run.h"

typedef enum gbx_swap_judgement {
    GBX_SWAP_FIXED = 0, /* the old one was wrong, or the run ended in it; the new one is right */
    GBX_SWAP_RIGHT = 1, /* the old one was right, too, or is unknown */
    GBX_SWAP_STILL_WRONG = 2,
    GBX_SWAP_BROKEN = 3,     /* the old one was right */
    GBX_SWAP_WRONG = 4,      /* the old one is unknown */
    GBX_SWAP_NOT_JUDGED = 5, /* see `reason` */
    GBX_SWAP_JUDGEMENT_COUNT = 6
} gbx_swap_judgement;

enum { GBX_SWAP_ELEMENTS = 10, GBX_SWAP_REASON_BYTES = 1024 };

typedef struct gbx_swap_element {
    size_t output;   /* of the result */
    uint64_t number; /* row-major */
    uint64_t old_bits;
    uint64_t new_bits;
    uint64_t expected_bits;
    bool has_old; /* the dump has it */
    bool has_new; /* the new kernel writes it */
    bool has_expected;
    double distance; /* the elements with the largest are shown */
} gbx_swap_element;

typedef struct gbx_replay_swap {
    gbx_replay_result result; /* `dump` is the old kernel's, `replay` the new one's */
    gbx_swap_judgement judgement;
    char reason[GBX_SWAP_REASON_BYTES]; /* of GBX_SWAP_NOT_JUDGED: one sentence */
    double rtol;                        /* of the judgement */
    double atol;
    uint64_t wrong;                               /* elements not within tolerance */
    gbx_swap_element elements[GBX_SWAP_ELEMENTS]; /* worst first */
    size_t element_count;
} gbx_replay_swap;

typedef struct gbx_swap_scene {
    const char *dump_directory;
    const gbx_kept_run *kept; /* may be NULL */
    bool is_trusted;          /* --trust was given */
} gbx_swap_scene;

/* job->request.objects has the new kernels. The caller frees out_swap, even after a failure. */
GBX_MUST_USE gbx_status gbx_replay_swap_run(const gbx_replay_job *job, const gbx_swap_scene *scene,
                                            gbx_replay_swap *out_swap);
void gbx_replay_swap_free(gbx_replay_swap *swap);

#endif
