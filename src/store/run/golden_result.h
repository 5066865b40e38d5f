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

/* The first wrong element of the first wrong output, "out[3,17]", freed by the caller; NULL if
 * there is none, or no run.json. *out_is_known is false if no golden was compared. */
GBX_MUST_USE gbx_status gbx_golden_result_read(const char *directory, char **out_element,
                                               bool *out_is_known);

#endif
