/* What `glassbox audit` prints: text or JSON. */
#ifndef GBX_CLI_AUDIT_REPORT_H
#define GBX_CLI_AUDIT_REPORT_H

#include "analysis/audit.h"
#include "base/status.h"
#include "cli/open_dump.h"

GBX_MUST_USE gbx_status gbx_audit_print_text(const gbx_opened_dump *dump, const gbx_audit *audit);
GBX_MUST_USE gbx_status gbx_audit_print_json(const gbx_opened_dump *dump, const gbx_audit *audit);

/* The index of an element, row-major, along each dimension of an entry. */
void gbx_audit_index(const gbx_entry *entry, uint64_t element, int64_t out_index[GBX_MAX_DIMS]);

#endif
