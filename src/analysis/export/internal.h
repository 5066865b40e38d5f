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

/* --- export_npy.c: the elements of an entry as they are exported: of another dtype where that is
 * asked for, and no longer once a signal has come --- */

typedef struct gbx_export_source {
    gbx_elements elements; /* its context is this struct: it must not move */
    gbx_entry_values values;
    const gbx_held_signals *signals; /* NULL where none is held */
} gbx_export_source;

/* The entry has values. `as` is the dtype to convert to, or GBX_DTYPE_NONE. */
GBX_MUST_USE gbx_status gbx_export_source_open(const gbx_entry *entry, const gbx_reader *reader,
                                               uint32_t as, const gbx_held_signals *signals,
                                               gbx_export_source *out_source);

/* Not all elements of the shape are there. */
static inline bool gbx_export_source_is_cut(const gbx_export_source *source) {
    return source->elements.stored < source->elements.count;
}

/*
 * Converts raw elements in place, each rounded once: to floats to nearest, ties to even, and beyond
 * the range to infinity; to integers likewise, and beyond the range to the nearest that there is;
 * NaN to an integer is 0; to bool everything but zero is true. Integers go to integers without a
 * float between them.
 */
void gbx_export_convert(uint32_t from, uint32_t to, uint64_t *bits, size_t count);

/*
 * Header and elements. Dtypes that numpy lacks come as raw bits (tensor/npy.h), bool as 0 and 1.
 * What is left of a tensor that was cut is one-dimensional, of packed elements the bytes. Failures of `to` are
 * its owner's to tell; it stops early at them.
 */
GBX_MUST_USE gbx_status gbx_export_npy(const gbx_export_source *source, FILE *to);

/* Bytes of all of it. */
uint64_t gbx_export_npy_bytes(const gbx_export_source *source);

/* --- export_text.c --- */

/*
 * A line "# shape (2, 3), float32", then the elements, each the shortest text that reads back as
 * the same element, bool as 0 and 1. One dimension is one element a line; of more, every line is a
 * row of the last dimension. What is left of a tensor that was cut is one element a line. Failures
 * of `to` are its owner's to tell; it stops early at them.
 */
GBX_MUST_USE gbx_status gbx_export_csv(const gbx_export_source *source, FILE *to);

/*
 * What the entry is ("# key: value"), an overview as gbx_array_print prints it, a row a line,
 * with its edges alone where it is large, and every element on a line of its own, "[0, 3, 17] 0.5",
 * in the shortest text that reads back. Nothing that two runs of one graph differ in: no times,
 * addresses, offsets. Failures of `to` are its owner's to tell; it stops early at them.
 */
GBX_MUST_USE gbx_status gbx_export_txt(const gbx_entry *entry, const gbx_export_source *source,
                                       FILE *to);

/*
 * --- zip_writer.c: a zip archive of stored members, written from its beginning to its end. Sizes
 * are known before a member is written, so that headers hold them; the 64-bit forms are used
 * exactly where a number needs them. Equal members give equal files. Memory grows by the directory
 * alone: a member's name and 24 bytes. One thread. ---
 */

typedef struct gbx_zip_writer gbx_zip_writer;

/* The numbers from which on the 64-bit forms are used; lower ones give archives that are as good,
 * and tests of the forms that need no large files. */
typedef struct gbx_zip_limits {
    uint64_t members;
    uint64_t bytes; /* of a member, and before it */
} gbx_zip_limits;

/* What the format asks for. */
#define GBX_ZIP_LIMITS ((gbx_zip_limits){0xffff, 0xffffffff})

/*
 * The descriptor, of an empty regular file, stays the caller's. `signals` may be NULL; once one has
 * come, writing fails. `name` is what messages call the file; borrowed, like the signals. Returns
 * NULL when the host is out of memory.
 */
gbx_zip_writer *gbx_zip_writer_create(int fd, const char *name, const gbx_held_signals *signals,
                                      gbx_zip_limits limits);

void gbx_zip_writer_destroy(gbx_zip_writer *zip);

/* Begins a member of `bytes`, named in ASCII or UTF-8. The member before has ended. */
GBX_MUST_USE gbx_status gbx_zip_writer_begin(gbx_zip_writer *zip, const char *name, uint64_t bytes);

/* The next bytes of the member. Returns the errno of the first write that failed, or 0; whoever
 * does not look hears of it at the end of the member. */
int gbx_zip_writer_write(gbx_zip_writer *zip, const void *bytes, size_t size);

/* `checksum` is the CRC-32 of the member. GBX_LOST where the disk failed, GBX_INTERNAL where the
 * member has another size than its beginning said. */
GBX_MUST_USE gbx_status gbx_zip_writer_end(gbx_zip_writer *zip, uint32_t checksum);

/* Writes the directory, after which the archive is whole and can only be destroyed. */
GBX_MUST_USE gbx_status gbx_zip_writer_finish(gbx_zip_writer *zip, uint64_t *out_bytes);

/* The same, whose members are written through a stream. */
typedef struct gbx_archive gbx_archive;

/* Takes the descriptor, of an empty file. `signals` may be NULL; once one has come, writing fails.
 * `name` is what messages call the file; borrowed, like the signals. */
GBX_MUST_USE gbx_status gbx_archive_create(int fd, const char *name,
                                           const gbx_held_signals *signals,
                                           gbx_archive **out_archive);

/* Begins a member that is going to have exactly `bytes`, to be put into *out_stream, which is the
 * archive's. The end of the member reports its failures. */
GBX_MUST_USE gbx_status gbx_archive_begin(gbx_archive *archive, const char *name, uint64_t bytes,
                                          FILE **out_stream);

/* Consumes `status`, what failed meanwhile; returns the write that failed, or else it. */
GBX_MUST_USE gbx_status gbx_archive_end(gbx_archive *archive, gbx_status status);

/* Ends the archive and frees it, after a failure too, which it consumes and returns; *out_bytes is
 * 0 then. GBX_LOST where the disk failed. */
GBX_MUST_USE gbx_status gbx_archive_close(gbx_archive *archive, gbx_status status,
                                          uint64_t *out_bytes);

#endif
