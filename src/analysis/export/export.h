/*
 * Entries of a dump for other tools: one file each, all in one archive, or in another tool's
 * layout. Output appears only when it is complete; a failure or a signal leaves nothing behind.
 *
 * All fail with GBX_IO if the target cannot be written or a signal has come, and with GBX_LOST if
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
    const uint64_t *indices; /* of the entries to write */
    uint64_t count;
    uint32_t as;                     /* the dtype to convert to, or GBX_DTYPE_NONE */
    const gbx_held_signals *signals; /* NULL if none are held */
    void (*on_progress)(void *context, uint64_t done, uint64_t all); /* may be NULL */
    void *context;
} gbx_export_job;

#define GBX_EXPORT_TARGETS "float16, float32, float64, int8 to int64, uint8 to uint64 or bool"

/* Whether elements can be converted to this dtype: those that numpy has. */
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

/* How many entries, and the names of the first ones. */
typedef struct gbx_export_names {
    uint64_t count;
    size_t used;
    char text[512];
} gbx_export_names;

/* What a user must know about an export. */
typedef struct gbx_export_notes {
    uint64_t written;              /* entries */
    uint64_t bytes;                /* of all of them */
    uint64_t raw[GBX_DTYPE_COUNT]; /* entries written as raw bits: numpy lacks their dtype */
    gbx_export_names skipped;      /* without payload */
    gbx_export_names overwritten;
    gbx_export_names cut; /* truncated */
    gbx_export_names in_flight;
} gbx_export_notes;

/*
 * One file per entry, "task_0x0000000100000000_before_in0.npy", for indices in any order, in a
 * directory that may exist already but must not be a symbolic link. If no entry has values, nothing
 * is created. Fails with GBX_BAD_FORMAT if two tasks have the same id: names would not be unique.
 */
GBX_MUST_USE gbx_status gbx_export_files(const gbx_export_job *job, gbx_export_format format,
                                         const char *directory, gbx_export_notes *out_notes);

/* The same as one archive for numpy.load; the indices are ascending. Replaces `path`. */
GBX_MUST_USE gbx_status gbx_export_npz(const gbx_export_job *job, const char *path,
                                       gbx_export_notes *out_notes);

/* --- the layout of hw-native-sys/simpler --- */

/* What was written, and what does not fit the layout. */
typedef struct gbx_simpler_report {
    uint64_t arguments;
    uint64_t payload_bytes;  /* of args.bin */
    uint64_t in_flight;      /* left out: they would look like results of completed tasks */
    uint64_t made_up_ids;    /* of tasks whose record was lost: 0xffffffff00000000 + task_seq */
    uint64_t not_numbers;    /* scalars that are NaN or infinite, written as strings */
    uint64_t foreign_dtypes; /* arguments of dtypes that the other tool lacks */
    bool has_level;          /* false: the dump has none, and dump_args_level is left out */
} gbx_simpler_report;

/* Writes a new directory with args_dump.json, an object with the array `args` in ascending order of
 * the indices, and args.bin, the payloads back to back. Takes 24 bytes per payload. */
GBX_MUST_USE gbx_status gbx_export_simpler(const gbx_export_job *job, const char *directory,
                                           gbx_simpler_report *out_report);

#endif
