#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/memory.h"
#include "store/journal/record_index.h"
#include "store/payload/payload.h"
#include "store/verify/internal.h"

/* Bytes read at a time: many for the disk, few enough to be hashed in the cache. */
enum { WINDOW_BYTES = 1 << 20 };

/* The payload read last. */
typedef struct window {
    gbx_payload_file file;
    uint64_t start;
    uint64_t bytes;
    unsigned char *memory;
} window;

typedef struct payload_check {
    gbx_reader *reader;
    bool is_own;
    gbx_findings *findings;
    const gbx_verify_observer *observer;
    window *payload;
    uint64_t done_bytes;
    uint64_t total_bytes;
} payload_check;

bool gbx_verify_is_own(const gbx_reader *reader) {
    const gbx_reader_origin *origin = gbx_reader_get_origin(reader);
    return origin->is_journal || (origin->known & GBX_KNOWN_TASK_SEQ);
}

/* Without its directory. */
static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* --- reading --- */

static gbx_status fill_window(window *payload, uint64_t offset) {
    uint64_t left = payload->file.bytes - offset;
    size_t wanted = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
    size_t got = 0;
    int error = gbx_pread_all(payload->file.fd, payload->memory, wanted, offset, &got);
    if (error)
        return gbx_fail(GBX_IO, "reading %s at byte %" PRIu64 ": %s", payload->file.path, offset,
                        strerror(error));
    if (got == 0)
        return gbx_fail(GBX_IO,
                        "reading %s at byte %" PRIu64 ": it ends there, but had %" PRIu64
                        " bytes when it was opened",
                        payload->file.path, offset, payload->file.bytes);
    payload->start = offset;
    payload->bytes = got;
    return NULL;
}

/* Hashes bytes that lie inside the file. */
static gbx_status hash_range(window *payload, uint64_t offset, uint64_t bytes,
                             gbx_hash128 *out_hash) {
    gbx_hash_state hash;
    gbx_hash_begin(&hash);
    while (bytes > 0) {
        if (offset < payload->start || offset >= payload->start + payload->bytes)
            GBX_TRY(fill_window(payload, offset));
        uint64_t skipped = offset - payload->start;
        uint64_t there = payload->bytes - skipped;
        uint64_t piece = there < bytes ? there : bytes;
        gbx_hash_update(&hash, payload->memory + skipped, (size_t)piece);
        offset += piece;
        bytes -= piece;
    }
    *out_hash = gbx_hash_end(&hash);
    return NULL;
}

/* --- checks --- */

static gbx_status add_finding(payload_check *check, const gbx_verify_entry *entry,
                              gbx_finding_kind kind, const char *what, const char *expected,
                              const char *got) {
    const gbx_record *record;
    if (entry->is_result) {
        gbx_findings_add_result(check->findings, kind, (uint32_t)entry->position, what, expected,
                                got);
        return NULL;
    }
    GBX_TRY(gbx_reader_at(check->reader, entry->position, &record));
    gbx_finding_place place = {entry->index, record->task, record->arg_index, record->stage};
    return gbx_findings_add_at(check->findings, kind, check->reader, &place, what, expected, got);
}

/* Whether the bytes of an entry can be read. */
static bool is_inside(const payload_check *check, const gbx_verify_entry *entry) {
    return gbx_range_is_inside(entry->offset, entry->bytes, check->payload->file.bytes);
}

static gbx_status check_place(payload_check *check, const gbx_verify_entry *entry) {
    char expected[128], got[64];
    if (check->is_own && entry->offset % GBX_PAYLOAD_ALIGNMENT != 0) {
        snprintf(expected, sizeof expected, "a multiple of %u", GBX_PAYLOAD_ALIGNMENT);
        snprintf(got, sizeof got, "%" PRIu64, entry->offset);
        GBX_TRY(add_finding(check, entry, GBX_FINDING_OFFSET, "bin_offset", expected, got));
    }
    if (is_inside(check, entry))
        return NULL;
    snprintf(expected, sizeof expected, "inside the %" PRIu64 " bytes of %.64s",
             check->payload->file.bytes, name_of(check->payload->file.path));
    snprintf(got, sizeof got, "%" PRIu64 " bytes at byte %" PRIu64, entry->bytes, entry->offset);
    return add_finding(check, entry, GBX_FINDING_OFFSET, "payload", expected, got);
}

static gbx_status check_hash(payload_check *check, const gbx_verify_entry *entry,
                             gbx_hash128 hash) {
    char expected[GBX_HASH_TEXT_BYTES], got[GBX_HASH_TEXT_BYTES], what[96];
    if (!entry->has_hash || (entry->hash.low == hash.low && entry->hash.high == hash.high))
        return NULL;
    snprintf(what, sizeof what, "hash of %" PRIu64 " bytes at byte %" PRIu64, entry->bytes,
             entry->offset);
    gbx_hash_format(entry->hash, expected);
    gbx_hash_format(hash, got);
    return add_finding(check, entry, GBX_FINDING_HASH, what, expected, got);
}

/* Of entries with the same bytes, only the first stored them. */
static gbx_status check_owner(payload_check *check, const gbx_verify_entry *first, size_t count) {
    char what[128];
    if (first->bytes == 0 || !check->is_own)
        return NULL;
    if (first->is_duplicate)
        return add_finding(check, first, GBX_FINDING_RECORD,
                           "refers to bytes of an earlier record, but no record stored them", NULL,
                           NULL);
    for (size_t i = 1; i < count && !first[i].is_duplicate; ++i) {
        snprintf(what, sizeof what, "payload at byte %" PRIu64 " is also stored by record %" PRIu64,
                 first->offset, (uint64_t)first->index);
        GBX_TRY(add_finding(check, &first[i], GBX_FINDING_OVERLAP, what, NULL, NULL));
    }
    return NULL;
}

/* `before` is the entry that reaches furthest of all that start earlier; NULL for none. */
static gbx_status check_overlap(payload_check *check, const gbx_verify_entry *before,
                                const gbx_verify_entry *entry) {
    char what[160];
    if (!before || !check->is_own || entry->bytes == 0 ||
        entry->offset - before->offset >= before->bytes)
        return NULL;
    snprintf(what, sizeof what,
             "payload of %" PRIu64 " bytes at byte %" PRIu64 " overlaps with %" PRIu64
             " bytes at byte %" PRIu64 " of record %" PRIu64,
             entry->bytes, entry->offset, before->bytes, before->offset, (uint64_t)before->index);
    return add_finding(check, entry, GBX_FINDING_OVERLAP, what, NULL, NULL);
}

static bool has_hash(const gbx_verify_entry *first, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (first[i].has_hash)
            return true;
    return false;
}

/* Entries with the same offset and size. */
static gbx_status check_group(payload_check *check, const gbx_verify_entry *first, size_t count) {
    gbx_hash128 hash = {0};
    bool is_readable = is_inside(check, first);
    GBX_TRY(check_owner(check, first, count));
    if (is_readable && has_hash(first, count))
        GBX_TRY(hash_range(check->payload, first->offset, first->bytes, &hash));
    for (size_t i = 0; i < count; ++i) {
        GBX_TRY(check_place(check, &first[i]));
        if (is_readable)
            GBX_TRY(check_hash(check, &first[i], hash));
    }
    check->done_bytes += is_readable ? first->bytes : 0;
    if (check->observer && check->observer->on_progress)
        check->observer->on_progress(check->observer->context, "payload", check->done_bytes,
                                     check->total_bytes);
    return NULL;
}

static uint64_t end_of(const gbx_verify_entry *entry) {
    uint64_t end;
    return gbx_checked_add_u64(entry->offset, entry->bytes, &end) ? end : UINT64_MAX;
}

static bool is_same_place(const gbx_verify_entry *a, const gbx_verify_entry *b) {
    return a->offset == b->offset && a->bytes == b->bytes;
}

static gbx_status check_all(payload_check *check, const gbx_verify_list *list) {
    const gbx_verify_entry *furthest = NULL;
    for (size_t i = 0; i < list->count;) {
        const gbx_verify_entry *entry = &list->entries[i];
        size_t count = 1;
        while (i + count < list->count && is_same_place(entry, &entry[count]))
            ++count;
        GBX_TRY(check_overlap(check, furthest, entry));
        GBX_TRY(check_group(check, entry, count));
        if (entry->bytes > 0 && (!furthest || end_of(entry) > end_of(furthest)))
            furthest = entry;
        i += count;
    }
    return NULL;
}

/* By place; the entry that stored the bytes before those that share them. */
static int compare_entries(const void *left, const void *right) {
    const gbx_verify_entry *a = left;
    const gbx_verify_entry *b = right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    if (a->is_duplicate != b->is_duplicate)
        return a->is_duplicate ? 1 : -1;
    if (a->is_result != b->is_result)
        return a->is_result ? 1 : -1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* In the order of compare_entries. Almost all offsets differ, and the journal's index sorts those
 * several times as fast as qsort. */
static gbx_status sort_entries(gbx_verify_list *list) {
    gbx_record_index by_offset = {0};
    if (list->count < 2)
        return NULL;
    GBX_TRY(gbx_record_index_reserve(&by_offset, list->count));
    for (size_t i = 0; i < list->count; ++i)
        gbx_record_index_add(&by_offset, list->entries[i].offset, i);
    gbx_record_index_sort(&by_offset);
    gbx_verify_entry *sorted = calloc(list->count, sizeof *sorted);
    if (!sorted) {
        gbx_record_index_free(&by_offset);
        return gbx_fail_memory("verifying the payload");
    }
    for (size_t i = 0; i < list->count; ++i)
        sorted[i] = list->entries[by_offset.entries[i].offset];
    gbx_record_index_free(&by_offset);
    free(list->entries);
    list->entries = sorted;
    list->capacity = list->count;
    for (size_t begin = 0, end; begin < list->count; begin = end) {
        for (end = begin + 1; end < list->count && sorted[end].offset == sorted[begin].offset;)
            ++end;
        if (end - begin > 1)
            qsort(sorted + begin, end - begin, sizeof *sorted, compare_entries);
    }
    return NULL;
}

static uint64_t count_bytes(const gbx_verify_list *list) {
    uint64_t sum = 0;
    for (size_t i = 0; i < list->count; ++i) {
        const gbx_verify_entry *entry = &list->entries[i];
        if (i == 0 || !is_same_place(entry, entry - 1))
            sum += entry->bytes;
    }
    return sum;
}

/* --- the file --- */

/* Nothing is open when there is no such file. */
static gbx_status open_payload(window *payload, const char *path) {
    gbx_status status = gbx_payload_file_open(&payload->file, path);
    if (status && gbx_status_code(status) == GBX_NOT_FOUND) {
        gbx_status_free(status);
        return NULL;
    }
    GBX_TRY(status);
    payload->memory = aligned_alloc(GBX_PAYLOAD_ALIGNMENT, WINDOW_BYTES);
    if (!payload->memory)
        return gbx_fail_memory("reading %s", path);
    (void)posix_fadvise(payload->file.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return NULL;
}

static void add_missing_file(gbx_findings *findings, const gbx_verify_list *list,
                             const char *path) {
    char what[192];
    uint64_t bytes = count_bytes(list);
    if (bytes == 0)
        return;
    snprintf(what, sizeof what,
             "%.64s is missing: %zu records have %" PRIu64 " bytes of payload there", name_of(path),
             list->count, bytes);
    gbx_findings_add(findings, GBX_FINDING_FILE, what);
}

gbx_status gbx_verify_payload(gbx_reader *reader, gbx_verify_list *list, gbx_findings *findings,
                              const gbx_verify_observer *observer, uint64_t *out_file_bytes) {
    GBX_TRY(sort_entries(list));
    window payload = {.file = {.fd = -1}};
    gbx_status status = open_payload(&payload, gbx_reader_get_origin(reader)->payload_path);
    if (!status && payload.file.fd < 0) {
        add_missing_file(findings, list, payload.file.path);
    } else if (!status) {
        payload_check check = {.reader = reader,
                               .is_own = gbx_verify_is_own(reader),
                               .findings = findings,
                               .observer = observer,
                               .payload = &payload,
                               .total_bytes = count_bytes(list)};
        status = check_all(&check, list);
    }
    *out_file_bytes = payload.file.bytes;
    gbx_payload_file_close(&payload.file);
    free(payload.memory);
    return status;
}
