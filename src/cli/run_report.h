/* What glassbox run prints: lines as results arrive, or one JSON document at the end. */
#ifndef GBX_CLI_RUN_REPORT_H
#define GBX_CLI_RUN_REPORT_H

#include "scene/runner.h"

typedef struct gbx_run_report gbx_run_report;

/* How the lines of text look. */
typedef struct gbx_run_layout {
    int name_width;  /* of the longest case's name */
    uint32_t rounds; /* 1: rounds are not told */
    bool is_verbose; /* outputs that are right are told too */
} gbx_run_layout;

/* The sentence of a case that failed, on stderr; nothing for others. */
void gbx_run_print_error(const gbx_round_result *result);

/* A line on stdout, more for outputs that differ, and the sentence. */
void gbx_run_print_result(const gbx_run_layout *layout, const gbx_round_result *result);

/* Keeps copies of results for the document; NULL when memory is out. */
gbx_run_report *gbx_run_report_create(void);
void gbx_run_report_free(gbx_run_report *report);
GBX_MUST_USE gbx_status gbx_run_report_add(gbx_run_report *report, const gbx_round_result *result);

/* Prints the document; `options` have no defaults left open. */
GBX_MUST_USE gbx_status gbx_run_report_print(const gbx_run_report *report, const gbx_scene *scene,
                                             const gbx_scene_options *options);

#endif
