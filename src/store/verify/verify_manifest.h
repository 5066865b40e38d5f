/* The manifests of a dump against its journal. */
#ifndef GBX_STORE_VERIFY_VERIFY_MANIFEST_H
#define GBX_STORE_VERIFY_VERIFY_MANIFEST_H

#include "store/verify/findings.h"
#include "store/verify/verify.h"

/*
 * Reads every manifest that the run was asked for, entry after entry, and compares each member with
 * the journal; what differs goes to `findings`. The text of the files does not matter, nor do
 * members beyond those of schema version 1. *out_is_missing: a file is not there. Fails with GBX_IO
 * when one cannot be read.
 */
GBX_MUST_USE gbx_status gbx_verify_manifests(const char *directory, gbx_reader *reader,
                                             gbx_findings *findings,
                                             const gbx_verify_observer *observer,
                                             bool *out_is_missing);

#endif
