/* A list of what is wrong with a dump. */
#ifndef GBX_STORE_VERIFY_FINDINGS_H
#define GBX_STORE_VERIFY_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "store/manifest/manifest.h"
#include "store/reader.h"
#include "text/names.h"

typedef enum gbx_finding_kind {
    GBX_FINDING_JOURNAL = 0,  /* a block or record cannot be read, or the end is missing */
    GBX_FINDING_COUNT = 1,    /* a total does not match what is counted */
    GBX_FINDING_TASK = 2,     /* something of a task is missing or repeated */
    GBX_FINDING_RECORD = 3,   /* parts of a record contradict each other */
    GBX_FINDING_SIZE = 4,     /* of a payload */
    GBX_FINDING_OFFSET = 5,   /* of a payload: not aligned, or outside the file */
    GBX_FINDING_OVERLAP = 6,  /* two different payloads share bytes */
    GBX_FINDING_HASH = 7,     /* of a payload */
    GBX_FINDING_MANIFEST = 8, /* a manifest differs from the journal */
    GBX_FINDING_FILE = 9,     /* a file is missing */
    GBX_FINDING_KIND_COUNT = 10
} gbx_finding_kind;

extern const gbx_name_set gbx_finding_kinds; /* "journal", "count"... */

/* The argument of a finding. */
typedef gbx_manifest_place gbx_finding_place;

typedef struct gbx_finding {
    gbx_finding_kind kind;
    bool has_place;
    gbx_finding_place place;
    char *kernel;   /* of the place; kernels of a mix joined by '+'; NULL when unknown */
    char *what;     /* "payload_bytes in the END record" */
    char *expected; /* NULL when `what` says it all */
    char *got;
} gbx_finding;

typedef struct gbx_findings {
    gbx_finding *items;
    size_t count;
    uint64_t capacity;
    bool has_failed; /* out of memory for one of them */
} gbx_findings;

/* All texts are copied. */
void gbx_findings_add(gbx_findings *findings, gbx_finding_kind kind, const char *what);

/* About an argument, whose kernels the reader knows; `place`, `expected` and `got` may be NULL. */
GBX_MUST_USE gbx_status gbx_findings_add_at(gbx_findings *findings, gbx_finding_kind kind,
                                            gbx_reader *reader, const gbx_finding_place *place,
                                            const char *what, const char *expected,
                                            const char *got);

/* About the RESULT of an argument of the run. */
void gbx_findings_add_result(gbx_findings *findings, gbx_finding_kind kind, uint32_t arg_index,
                             const char *what, const char *expected, const char *got);

/* About two numbers; adds nothing when they are equal. */
void gbx_findings_compare(gbx_findings *findings, gbx_finding_kind kind, const char *what,
                          uint64_t expected, uint64_t got);

void gbx_findings_free(gbx_findings *findings);

#endif
