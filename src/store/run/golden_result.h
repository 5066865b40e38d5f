/* What a golden said of a recorded run: the member `golden` of run.json. */
#ifndef GBX_STORE_RUN_GOLDEN_RESULT_H
#define GBX_STORE_RUN_GOLDEN_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/kernel.h>

#include "base/status.h"

/* An output that differs. */
typedef struct gbx_golden_output {
    const char *name;
    uint64_t elements;
    uint64_t mismatches;
    uint32_t ndims;
    int64_t first_bad[GBX_MAX_DIMS]; /* index of the first element that differs */
} gbx_golden_output;

/* Adds it to DIRECTORY/run.json, or replaces it; `count` 0: nothing differs. */
GBX_MUST_USE gbx_status gbx_golden_result_write(const char *directory,
                                                const gbx_golden_output *outputs, size_t count);

/* What is known of a recorded run. */
typedef struct gbx_golden_result {
    bool is_known;   /* a golden was compared */
    char **elements; /* "out[3,17]": the first that is wrong of each output that is */
    size_t count;
} gbx_golden_result;

/* Without run.json, nothing is known. The caller frees the result, even after a failure. */
GBX_MUST_USE gbx_status gbx_golden_result_read(const char *directory,
                                               gbx_golden_result *out_result);
void gbx_golden_result_free(gbx_golden_result *result);

#endif
