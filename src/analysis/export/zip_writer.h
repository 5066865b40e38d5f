/*
 * A zip archive of stored members, written from its beginning to its end. Sizes are told before a
 * member is written, so that headers hold them; the 64-bit forms are used exactly where a number
 * needs them. Equal members give equal files. Memory grows by the directory alone: a member's name
 * and 24 bytes. One thread.
 */
#ifndef GBX_ANALYSIS_EXPORT_ZIP_WRITER_H
#define GBX_ANALYSIS_EXPORT_ZIP_WRITER_H

#include <stdint.h>

#include "base/held_signals.h"
#include "base/status.h"

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
 * member has another size than its begin told. */
GBX_MUST_USE gbx_status gbx_zip_writer_end(gbx_zip_writer *zip, uint32_t checksum);

/* Writes the directory, after which the archive is whole and can only be destroyed. */
GBX_MUST_USE gbx_status gbx_zip_writer_finish(gbx_zip_writer *zip, uint64_t *out_bytes);

#endif
