#include "store/journal/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "store/dump_path.h"
#include "store/journal/block_range.h"

/* --- the lock --- */

gbx_status gbx_journal_lock(const char *directory, gbx_journal_use use, int *out_fd) {
    *out_fd = -1;
    char *path = gbx_dump_path_join(directory, "tensor_dump/tensor_dump.rec");
    if (!path)
        return gbx_fail_memory("opening the journal of %s", directory);
    int access = use == GBX_JOURNAL_READS ? O_RDONLY : O_RDWR;
    /* Not blocking: the reader refuses a pipe and does not wait for one. */
    int fd = gbx_above_standard_streams(open(path, access | O_CLOEXEC | O_NONBLOCK));
    int operation = use == GBX_JOURNAL_READS ? LOCK_SH : LOCK_EX;
    gbx_status status = NULL;
    if (fd < 0 && errno == ENOENT)
        status = gbx_fail(
            GBX_NOT_FOUND,
            "%s is missing: it holds the records of the dump, and nothing can be read without it",
            path);
    else if (fd < 0)
        status = gbx_fail(GBX_IO, "opening %s: %s", path, strerror(errno));
    else if (flock(fd, operation | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        status = gbx_fail(
            GBX_UNSUPPORTED,
            use == GBX_JOURNAL_READS
                ? "%s is being written: the run is still going on, or glassbox recover is "
                  "running; wait until it ends"
                : "%s is in use: the run is still going on, or another glassbox is reading it; "
                  "wait until it ends",
            path);
    if (status && fd >= 0)
        close(fd);
    else
        *out_fd = fd;
    free(path);
    return status;
}

/* --- header and blocks --- */

static gbx_status read_at(int fd, const char *path, uint64_t offset, void *to, size_t size,
                          size_t *out_size) {
    int error = gbx_pread_all(fd, to, size, offset, out_size);
    return error ? gbx_fail(GBX_IO, "cannot read %s: %s", path, strerror(error)) : NULL;
}

static bool is_header_length(const gbx_journal_header *header) {
    if (header->version == GBX_JOURNAL_OLDEST_VERSION)
        return header->header_bytes == sizeof *header;
    return header->header_bytes >= sizeof *header && header->header_bytes % 8 == 0 &&
           header->header_bytes <= GBX_JOURNAL_HEADER_MAX_BYTES;
}

gbx_status gbx_journal_check_header(int fd, const char *path, uint64_t *out_header_bytes) {
    gbx_journal_header header;
    size_t size = 0;
    GBX_TRY(read_at(fd, path, 0, &header, sizeof header, &size));
    if (size < sizeof header || memcmp(header.magic, GBX_JOURNAL_MAGIC, sizeof header.magic) != 0)
        return gbx_fail(GBX_BAD_FORMAT,
                        "%s is not the journal of a dump: it does not begin with "
                        "the %zu bytes of a header",
                        path, sizeof header);
    if (header.version > GBX_JOURNAL_VERSION)
        return gbx_fail(GBX_UNSUPPORTED,
                        "%s is a journal of version %" PRIu32 "; this glassbox reads versions %u "
                        "to %u: use a newer one",
                        path, header.version, GBX_JOURNAL_OLDEST_VERSION, GBX_JOURNAL_VERSION);
    if (header.version < GBX_JOURNAL_OLDEST_VERSION)
        return gbx_fail(GBX_BAD_FORMAT,
                        "%s is a journal of version %" PRIu32 ", which does not exist", path,
                        header.version);
    if (!is_header_length(&header))
        return gbx_fail(GBX_BAD_FORMAT,
                        "%s: the header claims to have %" PRIu32
                        " bytes; version 1 has %zu, version 2 a multiple of 8 from that to %u",
                        path, header.header_bytes, sizeof header, GBX_JOURNAL_HEADER_MAX_BYTES);
    *out_header_bytes = header.header_bytes;
    return NULL;
}

static GBX_PRINTF(4, 5) bool report(gbx_block_problem *problem, gbx_reader_stop stop,
                                    uint64_t offset, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem->text, sizeof problem->text, format, arguments);
    va_end(arguments);
    problem->stop = stop;
    problem->offset = offset;
    return false;
}

static bool check_head(const gbx_block_header *header, uint64_t offset, uint32_t sequence,
                       gbx_block_problem *problem) {
    static const gbx_block_header zero;
    if (memcmp(header, &zero, sizeof zero) == 0)
        return report(problem, GBX_STOP_CUT, offset, "zeros follow instead of a block");
    if (header->magic != GBX_BLOCK_MAGIC)
        return report(problem, GBX_STOP_BAD_MAGIC, offset, "no block begins here");
    size_t checked = offsetof(gbx_block_header, head_check);
    if (XXH3_64bits(header, checked) != header->head_check)
        return report(problem, GBX_STOP_BAD_CHECKSUM, offset,
                      "the head of block %" PRIu32 " does not match its checksum", sequence);
    if (header->sequence != sequence)
        return report(problem, GBX_STOP_BAD_SEQUENCE, offset,
                      "block %" PRIu32 " is where block %" PRIu32 " should be", header->sequence,
                      sequence);
    if (header->record_bytes == 0 || header->record_bytes > GBX_BLOCK_MAX_BYTES ||
        header->record_bytes % 8 != 0)
        return report(problem, GBX_STOP_BAD_BLOCK, offset,
                      "block %" PRIu32 " claims to have %" PRIu32 " bytes of records", sequence,
                      header->record_bytes);
    return true;
}

static bool report_cut(gbx_block_problem *problem, const gbx_journal_block *block, uint64_t bytes) {
    return report(problem, GBX_STOP_CUT, block->offset,
                  "block %" PRIu32 " is cut off after %" PRIu64 " of its %" PRIu32
                  " bytes of records",
                  block->header.sequence, bytes, block->header.record_bytes);
}

/* Every record lies inside the block and is valid, none is of an unknown type that must not be
 * skipped, and their number matches the header. */
static bool check_records(const gbx_journal_block *block, gbx_block_problem *problem) {
    uint64_t words = block->header.record_bytes / 8;
    uint64_t count = 0;
    for (uint64_t at = 0; at < words; ++count) {
        const char *wrong = gbx_record_check(block->records + at, words - at);
        const gbx_record *record = (const gbx_record *)(const void *)(block->records + at);
        uint64_t offset = block->offset + sizeof(gbx_block_header) + at * 8;
        if (wrong)
            return report(problem, GBX_STOP_BAD_RECORD, offset, "a record is invalid: %s", wrong);
        if (gbx_record_must_be_known(record->type))
            return report(
                problem, GBX_STOP_NEWER, offset,
                "a record has type %u, which this version does not know and must not skip",
                record->type);
        at += record->words;
    }
    if (count != block->header.record_count)
        return report(problem, GBX_STOP_BAD_BLOCK, block->offset,
                      "a block of %" PRIu64 " records claims to have %" PRIu32, count,
                      block->header.record_count);
    return true;
}

/* The bytes at `offset`: `size` of them, or as many as the file has. */
static gbx_status look_at(gbx_journal_source *source, uint64_t offset, size_t size,
                          const unsigned char **out_bytes, size_t *out_size) {
    uint64_t window_end = source->window_at + source->window_bytes;
    if (offset < source->window_at || offset + size > window_end) {
        source->window_at = offset;
        source->window_bytes = 0;
        GBX_TRY(read_at(source->fd, source->path, offset, source->window,
                        (size_t)gbx_min_u64(sizeof source->window, source->end - offset),
                        &source->window_bytes));
    }
    size_t within = (size_t)(offset - source->window_at);
    *out_bytes = source->window + within;
    *out_size = (size_t)gbx_min_u64(size, source->window_bytes - within);
    return NULL;
}

static void take_range(gbx_journal_block *block, const unsigned char *bytes, size_t size) {
    block->has_range = false;
    if (size < sizeof block->range || block->header.record_bytes < sizeof block->range ||
        block->header.record_count == 0)
        return;
    memcpy(&block->range, bytes, sizeof block->range);
    block->has_range = gbx_block_range_is_intact(&block->range);
}

gbx_status gbx_journal_read_head(gbx_journal_source *source, uint64_t offset, uint32_t sequence,
                                 gbx_journal_block *block, bool *out_is_good,
                                 gbx_block_problem *out_problem) {
    const size_t head_bytes = sizeof block->header;
    const unsigned char *bytes;
    size_t size = 0;
    *out_is_good = false;
    block->record_bytes = 0;
    if (offset >= source->end) {
        report(out_problem, GBX_STOP_END, offset, "%s", "");
        return NULL;
    }
    GBX_TRY(look_at(source, offset, head_bytes + sizeof block->range, &bytes, &size));
    if (size < head_bytes) {
        report(out_problem, GBX_STOP_CUT, offset, "the head of block %" PRIu32 " is cut off",
               sequence);
        return NULL;
    }
    block->offset = offset;
    memcpy(&block->header, bytes, head_bytes);
    if (!check_head(&block->header, offset, sequence, out_problem))
        return NULL;
    uint64_t room = source->end - offset - head_bytes;
    *out_is_good = block->header.record_bytes <= room || report_cut(out_problem, block, room);
    take_range(block, bytes + head_bytes, size - head_bytes);
    return NULL;
}

gbx_status gbx_journal_read_records(const gbx_journal_source *source, gbx_journal_block *block,
                                    bool *out_is_whole, gbx_block_problem *out_problem) {
    const gbx_block_header *header = &block->header;
    size_t size = 0;
    GBX_TRY(read_at(source->fd, source->path, block->offset + sizeof *header, block->records,
                    header->record_bytes, &size));
    if (size < header->record_bytes)
        *out_is_whole = report_cut(out_problem, block, size);
    else if (XXH3_64bits(block->records, header->record_bytes) != header->checksum)
        *out_is_whole = report(out_problem, GBX_STOP_BAD_CHECKSUM, block->offset,
                               "the records of block %" PRIu32 " do not match their checksum",
                               header->sequence);
    else
        *out_is_whole = check_records(block, out_problem);
    block->record_bytes = *out_is_whole ? header->record_bytes : 0;
    return NULL;
}

/* --- pages --- */

gbx_status gbx_journal_pages_create(gbx_journal_pages *pages, int fd, const char *path,
                                    uint64_t end) {
    uint64_t count = (end + GBX_PAGE_BYTES - 1) / GBX_PAGE_BYTES;
    pages->fd = fd;
    pages->path = path;
    pages->end = end;
    pages->count = count < GBX_PAGES_MAX ? (size_t)count : GBX_PAGES_MAX;
    pages->pages = aligned_alloc(GBX_PAGE_BYTES, pages->count * GBX_PAGE_BYTES);
    return pages->pages ? NULL : gbx_fail_memory("reading %s", path);
}

void gbx_journal_pages_destroy(gbx_journal_pages *pages) {
    free(pages->pages);
    free(pages->scratch);
    memset(pages, 0, sizeof *pages);
}

static gbx_status get_page(gbx_journal_pages *pages, uint64_t number,
                           const unsigned char **out_page) {
    size_t place = pages->count == GBX_PAGES_MAX ? number % GBX_PAGES_MAX : number % pages->count;
    unsigned char *page = pages->pages + place * GBX_PAGE_BYTES;
    if (pages->tags[place] != number + 1) {
        size_t size = 0;
        pages->tags[place] = 0;
        GBX_TRY(
            read_at(pages->fd, pages->path, number * GBX_PAGE_BYTES, page, GBX_PAGE_BYTES, &size));
        memset(page + size, 0, GBX_PAGE_BYTES - size); /* the file ends in it */
        pages->tags[place] = number + 1;
    }
    *out_page = page;
    return NULL;
}

static gbx_status get_across(gbx_journal_pages *pages, uint64_t offset, size_t size,
                             const void **out_bytes) {
    GBX_TRY(gbx_array_reserve(&pages->scratch, &pages->scratch_bytes, size, "reading a journal"));
    for (size_t done = 0; done < size;) {
        const unsigned char *page = NULL;
        GBX_TRY(get_page(pages, (offset + done) >> GBX_PAGE_SHIFT, &page));
        size_t within = (size_t)((offset + done) % GBX_PAGE_BYTES);
        size_t part = GBX_PAGE_BYTES - within;
        if (part > size - done)
            part = size - done;
        memcpy(pages->scratch + done, page + within, part);
        done += part;
    }
    *out_bytes = pages->scratch;
    return NULL;
}

gbx_status gbx_journal_pages_get(gbx_journal_pages *pages, uint64_t offset, size_t size,
                                 const void **out_bytes) {
    if (!gbx_range_is_inside(offset, size, pages->end))
        return gbx_fail(
            GBX_BAD_FORMAT,
            "%s: %zu bytes at offset %" PRIu64
            " lie beyond the part that was checked; the file changed while it was being read",
            pages->path, size, offset);
    size_t within = (size_t)(offset % GBX_PAGE_BYTES);
    if (within + size > GBX_PAGE_BYTES)
        return get_across(pages, offset, size, out_bytes);
    const unsigned char *page = NULL;
    GBX_TRY(get_page(pages, offset >> GBX_PAGE_SHIFT, &page));
    *out_bytes = page + within;
    return NULL;
}
