/*
 * Pieces of a file at any place, through a cache of pages of bounded size: memory for what is read
 * again and again, without a mapping of the whole. One thread.
 */
#ifndef GBX_STORE_JOURNAL_JOURNAL_PAGES_H
#define GBX_STORE_JOURNAL_JOURNAL_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { GBX_PAGE_SHIFT = 12, GBX_PAGE_BYTES = 1 << GBX_PAGE_SHIFT, GBX_PAGES_MAX = 1024 };

typedef struct gbx_journal_pages {
    int fd;                       /* borrowed */
    const char *path;             /* borrowed, for messages */
    uint64_t end;                 /* of what may be read */
    size_t count;                 /* of pages: as many as there are, up to GBX_PAGES_MAX */
    unsigned char *pages;         /* aligned */
    uint64_t tags[GBX_PAGES_MAX]; /* number of the page that lies there, plus 1; 0: none */
    unsigned char *scratch;       /* what lies across pages is put together here */
    size_t scratch_bytes;
} gbx_journal_pages;

/* Zero before. */
GBX_MUST_USE gbx_status gbx_journal_pages_create(gbx_journal_pages *pages, int fd, const char *path,
                                                 uint64_t end);
void gbx_journal_pages_destroy(gbx_journal_pages *pages);

/* `size` bytes at `offset`, until the next call, aligned as in the file, to a page at most. Fails
 * with GBX_BAD_FORMAT when they lie beyond `end` or the file has become shorter. */
GBX_MUST_USE gbx_status gbx_journal_pages_get(gbx_journal_pages *pages, uint64_t offset,
                                              size_t size, const void **out_bytes);

#endif
