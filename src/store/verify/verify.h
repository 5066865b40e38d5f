/*
 * Checks a dump: computes every checksum, hash, size and count again, and compares the manifests
 * with the journal. For a dump without a journal, checks the manifest's totals, the places of
 * payload and the hashes it has.
 */
#ifndef GBX_STORE_VERIFY_VERIFY_H
#define GBX_STORE_VERIFY_VERIFY_H

#include "store/reader.h"
#include "store/verify/findings.h"

/* `on_progress` may be NULL; it is called often. */
typedef struct gbx_verify_observer {
    void *context;
    void (*on_progress)(void *context, const char *what, uint64_t done_bytes, uint64_t bytes);
} gbx_verify_observer;

typedef struct gbx_verification {
    gbx_reader *reader;    /* totals, losses, what was skipped */
    gbx_findings findings; /* empty: the dump is good */
    uint64_t records;      /* readable, including those in flight */
    uint64_t payload_bytes;
    uint64_t hashed_records;    /* whose bytes were hashed again */
    uint64_t unhashed_tensors;  /* that have no bytes in the dump */
    uint64_t unchecked_tensors; /* that have bytes but no hash to compare them with */
    uint64_t file_bytes;        /* of the file of payload */
    bool can_be_recovered;      /* glassbox recover would change something */
    bool is_strict; /* the run ended by itself and lost nothing: every task must be complete */
} gbx_verification;

/*
 * `directory` is a dump directory. A wrong dump is not a failure: see its findings. Fails, with
 * nothing to free, when it cannot be read at all or a run still writes it (GBX_UNSUPPORTED). What a
 * dump itself records as missing (losses, skipped) is not wrong.
 */
GBX_MUST_USE gbx_status gbx_dump_verify(const char *directory, const gbx_verify_observer *observer,
                                        gbx_verification *out_verification);

/* The same without manifests beside a journal, which no tool reads then: much less for dumps of
 * many records. can_be_recovered does not count them. */
GBX_MUST_USE gbx_status gbx_dump_verify_journal(const char *directory,
                                                const gbx_verify_observer *observer,
                                                gbx_verification *out_verification);
void gbx_verification_free(gbx_verification *verification);

#endif
