/*
 * Which arguments of which tasks are captured, decided before any byte is copied. Filters are
 * parsed on the host (dump/host/filter.h) into a form without pointers that travels through global
 * memory; matching is device code.
 */
#ifndef GBX_DUMP_SELECT_H
#define GBX_DUMP_SELECT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/chip.h>

#include "text/names.h"

enum { GBX_FILTER_RANGES = 16 };

/* Which keys a filter has; all of them must match. A key given twice matches either value. */
enum {
    GBX_FILTER_FUNC = 1u << 0, /* `kernel` and `func`: resolved to func_ids on the host */
    GBX_FILTER_TASK = 1u << 1,
    GBX_FILTER_ARG = 1u << 2,
    GBX_FILTER_ROLE = 1u << 3,
    GBX_FILTER_STAGE = 1u << 4,
    GBX_FILTER_KIND = 1u << 5,
    GBX_FILTER_DTYPE = 1u << 6
};

typedef struct gbx_dump_filter {
    uint32_t keys; /* GBX_FILTER_... */
    uint32_t range_count;
    uint64_t args;   /* a bit for each slot */
    uint32_t dtypes; /* a bit for each gbx_dtype */
    uint8_t roles;   /* a bit for each gbx_role */
    uint8_t stages;  /* bit 0 before, bit 1 after */
    uint8_t kinds;   /* a bit for each GBX_KIND_... */
    uint8_t reserved;
    uint64_t funcs[GBX_MAX_KERNELS / 64]; /* a bit for each func_id */
    struct {
        uint64_t first;
        uint64_t last; /* included */
    } tasks[GBX_FILTER_RANGES];
} gbx_dump_filter;
static_assert(sizeof(gbx_dump_filter) == 408, "layout shared by host and device");

/* One argument at one stage, as a filter sees it. A scalar's dtype is the declared one. */
typedef struct gbx_dump_candidate {
    uint8_t arg_index;
    uint8_t kind; /* GBX_KIND_... */
    uint8_t role;
    uint8_t stage; /* 0 before, 1 after */
    uint8_t dtype;
} gbx_dump_candidate;

/* Whether `func` and `task` of a filter match a task; `func_ids` has GBX_SUBTASK_COUNT entries,
 * GBX_NO_KERNEL for none; any of them may match. */
bool gbx_dump_filter_matches_task(const gbx_dump_filter *filter, uint64_t task,
                                  const uint32_t *func_ids);

/* Whether all the other keys match an argument. */
bool gbx_dump_filter_matches_argument(const gbx_dump_filter *filter,
                                      const gbx_dump_candidate *candidate);

#endif
