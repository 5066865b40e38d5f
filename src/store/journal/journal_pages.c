#include "store/journal/journal_pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"

gbx_status gbx_journal_pages_create(gbx_journal_pages *pages, int fd, const char *path,
                                    uint64_t end) {
    uint64_t count = (end + GBX_PAGE_BYTES - 1) / GBX_PAGE_BYTES;
    pages->fd = fd;
    pages->path = path;
    pages->end = end;
    pages->count = count < GBX_PAGES_MAX ? (size_t)count : GBX_PAGES_MAX;
    pages->pages = aligned_alloc(GBX_PAGE_BYTES, pages->count * GBX_PAGE_BYTES);
    return pages->pages ? NULL : gbx_fail(GBX_EXHAUSTED, "no memory for reading %s", path);
}

void gbx_journal_pages_destroy(gbx_journal_pages *pages) {
    free(pages->pages);
    free(pages->scratch);
    memset(pages, 0, sizeof *pages);
}

/* Reads the page, as far as the file has it. */
static gbx_status load(gbx_journal_pages *pages, uint64_t number, unsigned char *page) {
    size_t size = 0;
    while (size < GBX_PAGE_BYTES) {
        off_t at = (off_t)(number * GBX_PAGE_BYTES + size);
        ssize_t got = pread(pages->fd, page + size, GBX_PAGE_BYTES - size, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return gbx_fail(GBX_IO, "cannot read %s: %s", pages->path, strerror(errno));
        if (got == 0)
            break;
        size += (size_t)got;
    }
    memset(page + size, 0, GBX_PAGE_BYTES - size);
    return NULL;
}

static gbx_status get_page(gbx_journal_pages *pages, uint64_t number,
                           const unsigned char **out_page) {
    size_t place = pages->count == GBX_PAGES_MAX ? number % GBX_PAGES_MAX : number % pages->count;
    unsigned char *page = pages->pages + place * GBX_PAGE_BYTES;
    if (pages->tags[place] != number + 1) {
        pages->tags[place] = 0;
        GBX_TRY(load(pages, number, page));
        pages->tags[place] = number + 1;
    }
    *out_page = page;
    return NULL;
}

static gbx_status grow_scratch(gbx_journal_pages *pages, size_t size) {
    if (size <= pages->scratch_bytes)
        return NULL;
    unsigned char *scratch = realloc(pages->scratch, size);
    if (!scratch)
        return gbx_fail(GBX_EXHAUSTED, "no memory for a record of %zu bytes of %s", size,
                        pages->path);
    pages->scratch = scratch;
    pages->scratch_bytes = size;
    return NULL;
}

static gbx_status get_across(gbx_journal_pages *pages, uint64_t offset, size_t size,
                             const void **out_bytes) {
    GBX_TRY(grow_scratch(pages, size));
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
        return gbx_fail(GBX_BAD_FORMAT,
                        "%s: %zu bytes at offset %" PRIu64 " lie beyond what was checked; "
                        "was it changed while it was read?",
                        pages->path, size, offset);
    size_t within = (size_t)(offset % GBX_PAGE_BYTES);
    if (within + size > GBX_PAGE_BYTES)
        return get_across(pages, offset, size, out_bytes);
    const unsigned char *page = NULL;
    GBX_TRY(get_page(pages, offset >> GBX_PAGE_SHIFT, &page));
    *out_bytes = page + within;
    return NULL;
}
