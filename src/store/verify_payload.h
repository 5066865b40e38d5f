/* The payload of a dump against what its records say of it: alignment, place, overlap, hash. */
#ifndef GBX_STORE_VERIFY_PAYLOAD_H
#define GBX_STORE_VERIFY_PAYLOAD_H

#include "base/hash.h"
#include "store/findings.h"
#include "store/verify.h"

/* One record with payload. */
typedef struct gbx_verify_entry {
    uint64_t offset;
    uint64_t bytes;
    gbx_hash128 hash;
    uint64_t position; /* in the reader's index */
    uint64_t index : 63;
    uint64_t is_duplicate : 1;
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
 * Checks every entry against tensor_dump.bin of the dump and adds what is wrong to `findings`;
 * sorts the list. Bytes that several records share are read once. Keeps a few MiB of payload in
 * memory. Fails with GBX_IO when the file cannot be read.
 */
GBX_MUST_USE gbx_status gbx_verify_payload(const char *directory, gbx_reader *reader,
                                           gbx_verify_list *list, gbx_findings *findings,
                                           const gbx_verify_observer *observer,
                                           uint64_t *out_file_bytes);

#endif
