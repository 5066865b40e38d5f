/* What `glassbox audit` prints: text or JSON. */
#ifndef GBX_CLI_AUDIT_REPORT_H
#define GBX_CLI_AUDIT_REPORT_H

#include "analysis/audit/audit.h"
#include "base/status.h"
#include "cli/open_dump.h"

/* `given` is how the user named the dump, NULL for the latest. */
GBX_MUST_USE gbx_status gbx_audit_print_text(const gbx_opened_dump *dump, const char *given,
                                             const gbx_audit *audit);
GBX_MUST_USE gbx_status gbx_audit_print_json(const gbx_opened_dump *dump, const char *given,
                                             const gbx_audit *audit);

/* A paragraph. */
GBX_MUST_USE gbx_status gbx_audit_print_finding(const gbx_opened_dump *dump, const char *given,
                                                const gbx_audit_finding *finding);

/* The command that replays a task; freed by the caller. */
GBX_MUST_USE gbx_status gbx_audit_replay_line(const gbx_opened_dump *dump, const char *given,
                                              uint64_t task, char **out_text);

#endif
