/*
 * Dumps: a directory with what every task of a run really read and wrote. Part of gbx_call_config
 * (chip.h); docs/tensor-dump.md is the manual.
 */
#ifndef GLASSBOX_DUMP_H
#define GLASSBOX_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GBX_DEFAULT_DUMP_ARENA_BYTES (UINT64_C(16) << 20)
#define GBX_MIN_DUMP_ARENA_BYTES (UINT64_C(64) << 10)
#define GBX_MAX_DUMP_ARENA_BYTES (UINT64_C(4) << 30)
#define GBX_DEFAULT_DUMP_BUFFERS 16
#define GBX_MIN_DUMP_BUFFERS 2
#define GBX_MAX_DUMP_BUFFERS 64
#define GBX_DEFAULT_DUMP_STALL_TIMEOUT_MS 30000
#define GBX_MAX_DUMP_FILTERS 32

typedef enum gbx_dump_level {
    GBX_DUMP_OFF = 0,
    GBX_DUMP_FULL = 1,    /* every argument of every task, with its bytes */
    GBX_DUMP_PARTIAL = 2, /* only arguments that are marked or match a filter */
    GBX_DUMP_HYBRID = 3,  /* every argument; bytes only if marked or matched by a filter */
    GBX_DUMP_STATS = 4    /* every argument, with statistics and hash instead of bytes */
} gbx_dump_level;

/* What a dump records about its origin; every string may be NULL. */
typedef struct gbx_dump_about {
    const char *command; /* the command line */
    const char *scene;
    const char *scene_path; /* its directory */
    const char *case_name;
    uint32_t round; /* 0: there is only one */
    uint32_t rank;
} gbx_dump_about;

/* How to dump. All zero means the defaults; only the directory must be set. */
typedef struct gbx_dump_options {
    const char *directory;      /* created with its parents; it must not hold a dump yet */
    const char *const *filters; /* "kernel=softmax*,stage=after_completion"; one match is enough */
    size_t filter_count;        /* up to GBX_MAX_DUMP_FILTERS */
    bool has_stats;             /* statistics at every level */
    bool keeps_duplicates;      /* store equal payloads each time */
    uint64_t arena_bytes;       /* room for payload per AICPU thread; 0: default */
    uint32_t buffer_count;      /* metadata buffers per AICPU thread; 0: default */
    uint32_t stall_timeout_ms;  /* how long a capture may wait for room; 0: default */
    uint64_t max_tensor_bytes;  /* of larger tensors only this much is stored; 0: no limit */
    gbx_dump_about about;
} gbx_dump_options;

/* What a dump holds, known when the run has ended. All zero without a dump. */
typedef struct gbx_dump_totals {
    uint64_t records;            /* tensors and scalars, at their stages */
    uint64_t tensors;            /* of them, tensors */
    uint64_t dispatches;         /* with enable_dump_args */
    uint64_t payload_bytes;      /* of all records, as if nothing were deduplicated */
    uint64_t stored_bytes;       /* written to disk */
    uint64_t deduplicated;       /* records that point at bytes stored before */
    uint64_t truncated;          /* by max_tensor_bytes */
    uint64_t in_flight;          /* outputs of a task that did not complete; counted apart */
    uint64_t dropped;            /* records lost; the dump lists them */
    uint64_t skipped;            /* tasks or arguments that were not captured */
    uint64_t stall_ns;           /* time that all AICPU threads waited for room */
    uint64_t longest_capture_ns; /* that one capture held an AICPU thread */
    uint64_t unmatched_filters;  /* filters that nothing matched */
    uint64_t results;            /* outputs and in-outs of the run at its end; counted apart */
    uint64_t result_payload_bytes;
    uint64_t result_stored_bytes;
} gbx_dump_totals;

#ifdef __cplusplus
}
#endif
#endif
