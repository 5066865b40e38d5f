/*
 * Entries of a dump for other tools: a file each, all in one archive, or in another tool's layout.
 * What is written appears when it is whole; a failure, or a signal, leaves nothing behind.
 *
 * All fail with GBX_IO where the place cannot be written to or a signal has come, GBX_LOST where
 * the disk failed.
 */
#ifndef GBX_ANALYSIS_EXPORT_EXPORT_H
#define GBX_ANALYSIS_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/entries.h"
#include "base/held_signals.h"
#include "base/status.h"

typedef struct gbx_export_job {
    gbx_entries *entries;
    const uint64_t *indices; /* what is written */
    uint64_t count;
    uint32_t as;                     /* the dtype to convert to, or GBX_DTYPE_NONE */
    const gbx_held_signals *signals; /* NULL where none is held */
    void (*on_progress)(void *context, uint64_t done, uint64_t all); /* may be NULL */
    void *context;
} gbx_export_job;

#define GBX_EXPORT_TARGETS "float16, float32, float64, int8 to int64, uint8 to uint64 or bool"

/* Whether elements can be converted to it: the dtypes that numpy has. */
bool gbx_export_is_target(uint32_t dtype);

/* --- files and archives --- */

typedef enum gbx_export_format {
    GBX_EXPORT_TXT = 0,
    GBX_EXPORT_NPY = 1,
    GBX_EXPORT_CSV = 2,
    GBX_EXPORT_NPZ = 3, /* one archive */
    GBX_EXPORT_SIMPLER = 4
} gbx_export_format;

/* "txt", of one of the first three: those are files. */
const char *gbx_export_extension(gbx_export_format format);

enum { GBX_EXPORT_NAMES_SHOWN = 5 };

/* Some entries: how many, and the names of the first. */
typedef struct gbx_export_names {
    uint64_t count;
    size_t used;
    char text[512];
} gbx_export_names;

/* What a user has to know of an export beside where it is. */
typedef struct gbx_export_notes {
    uint64_t written;
    uint64_t bytes;                /* of what was written */
    uint64_t raw[GBX_DTYPE_COUNT]; /* written as raw bits, which numpy has no dtype for */
    gbx_export_names skipped;      /* without payload */
    gbx_export_names overwritten;
    gbx_export_names cut; /* truncated */
    gbx_export_names in_flight;
} gbx_export_notes;

/*
 * A file an entry, "task_0x0000000100000000_before_in0.npy", in any order of the indices, into a
 * directory that may be there already. A symbolic link in its place is refused. Where nothing has
 * values, nothing is made. Fails with GBX_BAD_FORMAT where two tasks have one id, because names
 * would not be unique.
 */
GBX_MUST_USE gbx_status gbx_export_files(const gbx_export_job *job, gbx_export_format format,
                                         const char *directory, gbx_export_notes *out_notes);

/* The same as one archive that numpy.load reads; the indices are ascending. Replaces `path`. */
GBX_MUST_USE gbx_status gbx_export_npz(const gbx_export_job *job, const char *path,
                                       gbx_export_notes *out_notes);

/* --- the layout of hw-native-sys/simpler --- */

/* What was written, and what the layout has no place for. */
typedef struct gbx_simpler_report {
    uint64_t arguments;
    uint64_t payload_bytes;  /* of args.bin */
    uint64_t in_flight;      /* left out: they would pass for results of tasks that completed */
    uint64_t made_up_ids;    /* of tasks whose record was lost: 0xffffffff00000000 + task_seq */
    uint64_t not_numbers;    /* scalars that are NaN or infinite: strings */
    uint64_t foreign_dtypes; /* of dtypes that its own tools have no name for */
    bool has_level;          /* false: the dump tells none, and dump_args_level is left out */
} gbx_simpler_report;

/* args_dump.json, an object with the array `args` in ascending order of the indices, and args.bin,
 * the payloads back to back, in a new directory. Takes 24 bytes a payload. */
GBX_MUST_USE gbx_status gbx_export_simpler(const gbx_export_job *job, const char *directory,
                                           gbx_simpler_report *out_report);

#endif
