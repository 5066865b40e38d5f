/*
 * A dump in the layout of hw-native-sys/simpler: args_dump.json, an object with the array `args`,
 * and args.bin, the payloads back to back.
 */
#ifndef GBX_ANALYSIS_EXPORT_EXPORT_SIMPLER_H
#define GBX_ANALYSIS_EXPORT_EXPORT_SIMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis/entries.h"
#include "base/held_signals.h"

typedef struct gbx_simpler_dump {
    gbx_entries *entries;
    const uint64_t *indices; /* ascending: the order of `args` */
    uint64_t count;
    const char *run_dir;             /* the name of the directory */
    const gbx_held_signals *signals; /* NULL where none is held */
} gbx_simpler_dump;

/* What was written, and what the layout has no place for. */
typedef struct gbx_simpler_report {
    uint64_t arguments;
    uint64_t payload_bytes;  /* of args.bin */
    uint64_t in_flight;      /* left out: they would pass for results of tasks that completed */
    uint64_t made_up_ids;    /* of tasks whose record was lost: 0xffffffff00000000 + task_seq */
    uint64_t not_numbers;    /* scalars that are NaN or infinite: strings */
    uint64_t foreign_dtypes; /* of dtypes that its own tools have no name for: float64, int4 */
    bool has_level;          /* false: the dump tells none, and dump_args_level is left out */
} gbx_simpler_report;

/* Streams to both; their failures are their owner's to tell. Takes 24 bytes a payload. */
GBX_MUST_USE gbx_status gbx_export_simpler(const gbx_simpler_dump *dump, FILE *json, FILE *bin,
                                           gbx_simpler_report *out_report);

#endif
