/*
 * The reports of commands: for people, the line that matters first, and as one JSON document (the
 * forms are in docs/). Each writes to a sink and fails only as reading and writing do.
 */
#ifndef GBX_REPORT_REPORTS_H
#define GBX_REPORT_REPORTS_H

#include "analysis/audit/audit.h"
#include "report/dump.h"
#include "report/sink.h"

/* --- audit_report.c --- */

/* `given` is how the user named the dump, NULL for the latest. */
GBX_MUST_USE gbx_status gbx_audit_print(gbx_sink *sink, const gbx_opened_dump *dump,
                                        const char *given, const gbx_audit *audit, bool as_json);

#endif
