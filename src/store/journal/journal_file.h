/*
 * Reading tensor_dump.rec: locking it, its header, its blocks in order, each checked completely
 * before its records are used, and its bytes at any offset through a cache of pages.
 */
#ifndef GBX_STORE_JOURNAL_JOURNAL_FILE_H
#define GBX_STORE_JOURNAL_JOURNAL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "store/reader.h"

/* --- the lock --- */

/* The run that writes a journal holds an exclusive flock on it from its creation until it is
 * closed. The system releases it when the process ends in any way. */
typedef enum gbx_journal_use {
    GBX_JOURNAL_READS,  /* shared with other readers */
    GBX_JOURNAL_REPAIRS /* exclusive, and opened for writing */
} gbx_journal_use;

/*
 * Opens the journal of a dump and locks it without waiting; closing *out_fd releases the lock.
 * *out_fd is -1 on failure: GBX_NOT_FOUND when there is no journal, GBX_UNSUPPORTED when another
 * process holds it, GBX_IO when the system refuses. Takes no lock where the file system has none.
 */
GBX_MUST_USE gbx_status gbx_journal_lock(const char *directory, gbx_journal_use use, int *out_fd);

/* --- header and blocks --- */

enum { GBX_JOURNAL_WINDOW_BYTES = 4096 };

/* A journal whose blocks are read in order, by one thread. */
typedef struct gbx_journal_source {
    int fd;             /* borrowed */
    const char *path;   /* borrowed, for messages */
    uint64_t end;       /* of the part that counts */
    uint64_t window_at; /* offset of what is read ahead: heads of small blocks share a read */
    size_t window_bytes;
    unsigned char window[GBX_JOURNAL_WINDOW_BYTES];
} gbx_journal_source;

typedef struct gbx_journal_block {
    gbx_block_header header; /* checked */
    uint64_t offset;         /* of its header in the file */
    uint64_t record_bytes;   /* of `records`; 0: they are not read, or not whole */
    uint64_t *records;       /* room for GBX_BLOCK_MAX_BYTES or the file; the caller owns it */
    bool has_range;          /* it begins with a RANGE that is intact: */
    gbx_record_range range;
} gbx_journal_block;

/* Why a block cannot be read; the text is set for all but GBX_STOP_END. */
typedef struct gbx_block_problem {
    gbx_reader_stop stop;
    uint64_t offset;
    char text[GBX_STOP_TEXT_BYTES];
} gbx_block_problem;

/* Checks a journal's header; blocks begin at *out_header_bytes. GBX_BAD_FORMAT when it is not a
 * journal, GBX_UNSUPPORTED for a newer version. */
GBX_MUST_USE gbx_status gbx_journal_check_header(int fd, const char *path,
                                                 uint64_t *out_header_bytes);

/*
 * Reads the header of the block at `offset`, as number `sequence`, and its RANGE. *out_is_good says
 * whether the header is valid and the file long enough for the block; `out_problem` says why not.
 * Fails when the system refuses to read.
 */
GBX_MUST_USE gbx_status gbx_journal_read_head(gbx_journal_source *source, uint64_t offset,
                                              uint32_t sequence, gbx_journal_block *block,
                                              bool *out_is_good, gbx_block_problem *out_problem);

/* Then its records. *out_is_whole says whether they match their checksum and each is valid. */
GBX_MUST_USE gbx_status gbx_journal_read_records(const gbx_journal_source *source,
                                                 gbx_journal_block *block, bool *out_is_whole,
                                                 gbx_block_problem *out_problem);

/* --- pages: a cache for repeated reads, without mapping the file --- */

enum { GBX_PAGE_SHIFT = 12, GBX_PAGE_BYTES = 1 << GBX_PAGE_SHIFT, GBX_PAGES_MAX = 1024 };

/* One thread. */
typedef struct gbx_journal_pages {
    int fd;                       /* borrowed */
    const char *path;             /* borrowed, for messages */
    uint64_t end;                 /* of the readable part */
    size_t count;                 /* of pages: all of the file's, up to GBX_PAGES_MAX */
    unsigned char *pages;         /* aligned */
    uint64_t tags[GBX_PAGES_MAX]; /* number of the cached page, plus 1; 0: none */
    unsigned char *scratch;       /* holds what spans pages */
    uint64_t scratch_bytes;
} gbx_journal_pages;

/* Zero before. */
GBX_MUST_USE gbx_status gbx_journal_pages_create(gbx_journal_pages *pages, int fd, const char *path,
                                                 uint64_t end);
void gbx_journal_pages_destroy(gbx_journal_pages *pages);

/* `size` bytes at `offset`, valid until the next call, aligned as in the file, up to a page. Fails
 * with GBX_BAD_FORMAT when they lie beyond `end` or the file became shorter. */
GBX_MUST_USE gbx_status gbx_journal_pages_get(gbx_journal_pages *pages, uint64_t offset,
                                              size_t size, const void **out_bytes);

#endif
