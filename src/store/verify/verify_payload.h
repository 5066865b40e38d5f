/* The payload of a dump against what its records say of it: alignment, place, overlap, hash. */
#ifndef GBX_STORE_VERIFY_VERIFY_PAYLOAD_H
#define GBX_STORE_VERIFY_VERIFY_PAYLOAD_H

#include "base/hash.h"
#include "store/verify/findings.h"
#include "store/verify/verify.h"

/* One record with payload. */
typedef struct gbx_verify_entry {
    uint64_t offset;
    uint64_t bytes;
    gbx_hash128 hash;
    uint64_t position; /* in the reader's index */
    uint64_t index : 62;
    uint64_t is_duplicate : 1;
    uint64_t has_hash : 1;
} gbx_verify_entry;

typedef struct gbx_verify_list {
    gbx_verify_entry *entries;
    size_t count;
    size_t capacity;
} gbx_verify_list;

/* False when memory is out. */
bool gbx_verify_list_add(gbx_verify_list *list, const gbx_verify_entry *entry);
void gbx_verify_list_free(gbx_verify_list *list);

/*
 * Whether records are those of our own form, in which payload is aligned and bytes belong to one
 * record, or to several that share all of them. Other tools promise neither.
 */
bool gbx_verify_is_own(const gbx_reader *reader);

/*
 * Checks every entry against the file of payload and adds what is wrong to `findings`; sorts the
 * list. Bytes that several records share are read once. Keeps a few MiB of payload in memory. Fails
 * with GBX_IO when the file cannot be read.
 */
GBX_MUST_USE gbx_status gbx_verify_payload(gbx_reader *reader, gbx_verify_list *list,
                                           gbx_findings *findings,
                                           const gbx_verify_observer *observer,
                                           uint64_t *out_file_bytes);

#endif
