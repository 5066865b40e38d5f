/*
 * What host and chip share for guards and findings, in global memory. The host writes the setup and
 * the list of buffers before the launch; the chip copies them to private memory at its start and
 * writes only findings. The host trusts nothing that it reads here.
 */
#ifndef GBX_GUARD_ABI_H
#define GBX_GUARD_ABI_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/finding.h>

#define GBX_GUARD_MAGIC UINT64_C(0x3044524147584247) /* "GBXGARD0" */

enum {
    GBX_GUARD_ZONE_BYTES = 512, /* the least between two buffers, and a multiple of */
    GBX_GUARD_FINDINGS = 64,    /* findings that are kept; more are counted */
    GBX_GUARD_MAX_BUFFERS = 1 << 20
};

/* What the chip does; the numbers of the public gbx_guard_mode but for its default. */
typedef enum gbx_guard_action {
    GBX_GUARD_ACTION_NONE = 1, /* no zones; findings of others are still kept */
    GBX_GUARD_ACTION_REPORT = 2,
    GBX_GUARD_ACTION_STOP = 3
} gbx_guard_action;

/* Memory that the host allocated. */
typedef struct gbx_guard_buffer {
    uint64_t address; /* a multiple of 512; buffers ascend and do not overlap */
    uint64_t bytes;
    uint64_t zone_end;   /* the zone behind it lies from address + bytes to here */
    uint64_t kept_first; /* these bytes are data of the host, */
    uint64_t kept_end;   /* offsets from `address`; all others are new memory, to be poisoned */
    uint32_t place;      /* gbx_run_finding_place */
    uint32_t index;      /* see gbx_run_finding.index */
    uint32_t number;     /* in order of allocation: the sign of its poison */
    uint32_t is_region;  /* the chip puts buffers into it: not poisoned */
} gbx_guard_buffer;
static_assert(sizeof(gbx_guard_buffer) == 56, "layout of a guard's buffer");

/* The chip writes `kind` of a record last, then counts it. */
typedef struct gbx_guard_findings {
    _Atomic uint64_t count;     /* all, kept or not */
    _Atomic uint64_t unguarded; /* buffers of the chip's own that have no zone */
    uint64_t reserved[6];
    gbx_run_finding records[GBX_GUARD_FINDINGS];
} gbx_guard_findings;
static_assert(offsetof(gbx_guard_findings, records) == 64, "layout of findings");

/* At guard_data_base of the launch. */
typedef struct gbx_guard_setup {
    uint64_t magic;
    uint32_t action; /* gbx_guard_action */
    uint32_t buffer_count;
    uint64_t buffers; /* address of gbx_guard_buffer[buffer_count] */
    uint64_t reserved[5];
    gbx_guard_findings findings;
} gbx_guard_setup;
static_assert(offsetof(gbx_guard_setup, findings) == 64, "layout of a guard's setup");

#endif
