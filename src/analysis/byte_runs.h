/* The runs of bytes that a view consists of. */
#ifndef GBX_ANALYSIS_BYTE_RUNS_H
#define GBX_ANALYSIS_BYTE_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include <glassbox/kernel.h>

/* A view with more pieces is not followed from task to task. */
#define GBX_FOLLOWED_PIECES (UINT64_C(1) << 20)

typedef struct gbx_byte_run {
    uint64_t begin;
    uint64_t end;
    uint64_t offset; /* in the row-major payload */
} gbx_byte_run;

typedef struct gbx_byte_runs {
    gbx_tensor view; /* only the outer dimensions */
    uint64_t run_bits;
    uint64_t left;
    uint64_t next_offset; /* in the payload; meaningless for packed elements */
    int64_t position;     /* of the next run, in bits from view.data */
    uint32_t bits;        /* of an element */
    int64_t index[GBX_MAX_DIMS];
} gbx_byte_runs;

/* The view is valid. */
void gbx_byte_runs_begin(const gbx_tensor *view, gbx_byte_runs *out_runs);
bool gbx_byte_runs_next(gbx_byte_runs *runs, gbx_byte_run *out_run);

#endif
