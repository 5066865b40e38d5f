/*
 * The reports of commands: for people, the line that matters first, and as one JSON document (the
 * forms are in docs/). Each writes to a sink and fails only as reading and writing do.
 */
#ifndef GBX_REPORT_REPORTS_H
#define GBX_REPORT_REPORTS_H

#include "analysis/audit/audit.h"
#include "analysis/diff/diff.h"
#include "report/dump.h"
#include "report/sink.h"
#include "store/recover.h"
#include "store/verify/verify.h"

/* --- audit_report.c --- */

/* `given` is how the user named the dump, NULL for the latest. */
GBX_MUST_USE gbx_status gbx_audit_print(gbx_sink *sink, const gbx_opened_dump *dump,
                                        const char *given, const gbx_audit *audit, bool as_json);

/* --- diff_report.c --- */

/* The two dumps, and the one whose names and numbers are shown: A, unless only B has names. */
typedef struct gbx_diff_dumps {
    gbx_opened_dump a;
    gbx_opened_dump b;
    bool shows_b;
} gbx_diff_dumps;

enum { GBX_DIFF_LINES_MAX = 20 };

/* The first records of a kind; their entries are NULL. */
typedef struct gbx_diff_kept {
    gbx_diff_record records[GBX_DIFF_LINES_MAX];
    uint64_t count;
} gbx_diff_kept;

/* While records come, JSON is written and the first of each kind are kept for a text. */
typedef struct gbx_diff_report {
    gbx_sink *sink;
    const gbx_diff_dumps *dumps;
    bool as_json;
    gbx_diff_kept different;
    gbx_diff_kept single; /* in only one dump */
    gbx_diff_kept within;
    gbx_diff_record gaps[GBX_DIFF_REASON_COUNT]; /* the first that was not compared of each */
} gbx_diff_report;

/* The report borrows sink and dumps, and needs no free. */
void gbx_diff_report_begin(gbx_sink *sink, const gbx_diff_dumps *dumps, bool as_json,
                           gbx_diff_report *out_report);

/* For gbx_diff_observer.on_record. */
void gbx_diff_report_add(gbx_diff_report *report, const gbx_diff_record *record);

/* `status` is how the comparison ended: a failure is returned, and JSON ends where it is. */
GBX_MUST_USE gbx_status gbx_diff_report_end(gbx_diff_report *report, const gbx_diff_result *result,
                                            gbx_status status);

/* --- verify_report.c --- */

GBX_MUST_USE gbx_status gbx_verification_print(gbx_sink *sink, const gbx_verification *verification,
                                               const char *directory, bool as_json);

/* --- recover_report.c --- */

void gbx_recovery_print(gbx_sink *sink, const gbx_recovery *recovery, const char *directory);

#endif
