/*
 * The reports of commands: for people, the line that matters first, and as one JSON document (the
 * forms are in docs/). Each writes to a sink and fails only as reading and writing do.
 */
#ifndef GBX_REPORT_REPORTS_H
#define GBX_REPORT_REPORTS_H

#include "analysis/audit/audit.h"
#include "report/dump.h"
#include "report/sink.h"
#include "scene/runner.h"

/* --- audit_report.c --- */

/* `given` is how the user named the dump, NULL for the latest. */
GBX_MUST_USE gbx_status gbx_audit_print(gbx_sink *sink, const gbx_opened_dump *dump,
                                        const char *given, const gbx_audit *audit, bool as_json);

/* --- run_report.c --- */

typedef struct gbx_run_report gbx_run_report;

typedef struct gbx_run_layout {
    const gbx_scene_case *const *cases; /* that will run; borrowed */
    size_t case_count;
    uint32_t rounds;
    bool is_verbose; /* outputs that are right are printed, too */
    bool as_json;    /* results are kept for the document */
} gbx_run_layout;

/* The layout and the sink are borrowed. */
GBX_MUST_USE gbx_status gbx_run_report_create(gbx_sink *sink, const gbx_run_layout *layout,
                                              gbx_run_report **out_report);
void gbx_run_report_free(gbx_run_report *report); /* takes NULL */

/* A result as it comes: a line, more for outputs that differ, and on stderr the sentence of a case
 * that failed. For a document it is copied. */
GBX_MUST_USE gbx_status gbx_run_report_add(gbx_run_report *report, const gbx_round_result *result);

/* `options` have no defaults left open. */
GBX_MUST_USE gbx_status gbx_run_report_print_json(gbx_run_report *report, const gbx_scene *scene,
                                                  const gbx_scene_options *options);

#endif
