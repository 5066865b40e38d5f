/* Shared by the files that check a dump. */
#ifndef GBX_REPLAY_CHECK_INTERNAL_H
#define GBX_REPLAY_CHECK_INTERNAL_H

#include "replay/check/check_report.h"
#include "replay/session.h"

/* --- check_report.c --- */

/* Keeps a copy of a sentence as long as the report. */
GBX_MUST_USE gbx_status gbx_check_report_keep(gbx_check_report *report, const char *text,
                                              const char **out_reason);

/* --- check_victims.c --- */

/* Looks for tasks that are wrong in the dump because another task wrote into their outputs. */
GBX_MUST_USE gbx_status gbx_check_acquit(gbx_replay_session *session,
                                         const gbx_references *references,
                                         gbx_check_report *report);

#endif
