/* What the formats of an export share. */
#ifndef GBX_ANALYSIS_EXPORT_INTERNAL_H
#define GBX_ANALYSIS_EXPORT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis/entries.h"
#include "base/held_signals.h"
#include "base/status.h"

/* --- export_npy.c: the elements of an entry, converted to another dtype on request; reading fails
 * once a signal has come --- */

typedef struct gbx_export_source {
    gbx_elements elements; /* its context is this struct: it must not move */
    gbx_entry_values values;
    const gbx_held_signals *signals; /* NULL if none are held */
} gbx_export_source;

/* The entry has values. `as` is the dtype to convert to, or GBX_DTYPE_NONE. */
GBX_MUST_USE gbx_status gbx_export_source_open(const gbx_entry *entry, const gbx_reader *reader,
                                               uint32_t as, const gbx_held_signals *signals,
                                               gbx_export_source *out_source);

/* Whether elements of the shape are missing. */
static inline bool gbx_export_source_is_cut(const gbx_export_source *source) {
    return source->elements.stored < source->elements.count;
}

/*
 * Converts raw elements in place, each rounded once to nearest, ties to even. Beyond the range,
 * floats become infinite and integers the nearest limit; NaN becomes the integer 0; all but zero is
 * true as bool. Integers are converted to integers exactly, not through a float.
 */
void gbx_export_convert(uint32_t from, uint32_t to, uint64_t *bits, size_t count);

/*
 * Header and elements. Dtypes that numpy lacks are written as raw bits (tensor/npy.h), bool as 0
 * and 1. A truncated tensor becomes one-dimensional, packed elements as bytes. Like the next two it
 * stops at the first write error of `to`, which the caller reports.
 */
GBX_MUST_USE gbx_status gbx_export_npy(const gbx_export_source *source, FILE *to);

/* The bytes that gbx_export_npy writes. */
uint64_t gbx_export_npy_bytes(const gbx_export_source *source);

/* --- export_text.c --- */

/*
 * A line "# shape (2, 3), float32", then the elements as by gbx_element_format, bool as 0 and 1:
 * one row of the last dimension per line. A tensor of one dimension, or a truncated one, has one
 * element per line.
 */
GBX_MUST_USE gbx_status gbx_export_csv(const gbx_export_source *source, FILE *to);

/*
 * The metadata of the entry ("# key: value"), an overview by gbx_array_print with one row per line,
 * and every element on its own line, "[0, 3, 17] 0.5", as by gbx_element_format. Contains nothing
 * that differs between two runs of one graph: no times, addresses or offsets.
 */
GBX_MUST_USE gbx_status gbx_export_txt(const gbx_entry *entry, const gbx_export_source *source,
                                       FILE *to);

/* "2, 3" */
void gbx_export_numbers(FILE *to, const int64_t *numbers, uint32_t count);

/*
 * --- zip_writer.c: a zip archive of stored members, written from start to end. The size of a
 * member is known before it is written, so headers hold it; 64-bit forms are used only where a
 * number needs them. Equal members give equal files. Memory grows only with the directory: a name
 * and 24 bytes per member. One thread. ---
 */

typedef struct gbx_zip_writer gbx_zip_writer;

/* From these numbers on, the 64-bit forms are used. Lower limits give valid archives too, so tests
 * of these forms need no large files. */
typedef struct gbx_zip_limits {
    uint64_t members;
    uint64_t bytes; /* of a member, and before it */
} gbx_zip_limits;

/* The limits of the format. */
#define GBX_ZIP_LIMITS ((gbx_zip_limits){0xffff, 0xffffffff})

/*
 * `fd` is an empty regular file, and stays the caller's. `signals` may be NULL; once one has come,
 * writing fails. `name` is the file's name in messages; borrowed, like the signals. Returns NULL
 * when the host is out of memory.
 */
gbx_zip_writer *gbx_zip_writer_create(int fd, const char *name, const gbx_held_signals *signals,
                                      gbx_zip_limits limits);

void gbx_zip_writer_destroy(gbx_zip_writer *zip);

/* Begins a member of `bytes`, named in ASCII or UTF-8. The previous member must have ended. */
GBX_MUST_USE gbx_status gbx_zip_writer_begin(gbx_zip_writer *zip, const char *name, uint64_t bytes);

/* The next bytes of the member. Returns the errno of the first failed write, or 0; the end of the
 * member reports it again. */
int gbx_zip_writer_write(gbx_zip_writer *zip, const void *bytes, size_t size);

/* `checksum` is the CRC-32 of the member. GBX_LOST if the disk failed, GBX_INTERNAL if the member
 * does not have the size given at its beginning. */
GBX_MUST_USE gbx_status gbx_zip_writer_end(gbx_zip_writer *zip, uint32_t checksum);

/* Writes the directory: the archive is then complete and can only be destroyed. */
GBX_MUST_USE gbx_status gbx_zip_writer_finish(gbx_zip_writer *zip, uint64_t *out_bytes);

/* The same with members written through a stream. */
typedef struct gbx_archive gbx_archive;

/* Takes over `fd`; the rest is as for gbx_zip_writer_create. */
GBX_MUST_USE gbx_status gbx_archive_create(int fd, const char *name,
                                           const gbx_held_signals *signals,
                                           gbx_archive **out_archive);

/* Begins a member of exactly `bytes`, which the caller writes to *out_stream. The stream belongs to
 * the archive, and the end of the member reports its failures. */
GBX_MUST_USE gbx_status gbx_archive_begin(gbx_archive *archive, const char *name, uint64_t bytes,
                                          FILE **out_stream);

/* Consumes `status`, a failure so far or NULL; returns a failed write or else `status`. */
GBX_MUST_USE gbx_status gbx_archive_end(gbx_archive *archive, gbx_status status);

/* Ends and frees the archive, even after a failure, which it consumes and returns; then *out_bytes
 * is 0. GBX_LOST if the disk failed. */
GBX_MUST_USE gbx_status gbx_archive_close(gbx_archive *archive, gbx_status status,
                                          uint64_t *out_bytes);

#endif
