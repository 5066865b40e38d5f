/* What check found, as text and as JSON on stdout. */
#ifndef GBX_CLI_CHECK_TEXT_H
#define GBX_CLI_CHECK_TEXT_H

#include "replay/check/check_report.h"

/* "softmax_prepare", "multiply+finish"; GBX_VIEW_KERNEL_BYTES. */
const char *gbx_check_kernel_text(const gbx_check_report *report, const gbx_check_line *line,
                                  char *out_text);

/* "29"; its id where the dump does not tell numbers. What --task of replay takes. */
enum { GBX_CHECK_TASK_BYTES = 40 };
const char *gbx_check_task_text(const gbx_check_report *report, const gbx_check_line *line,
                                char out_text[GBX_CHECK_TASK_BYTES]);

/* `replay` is the command that replays the first task that is introduced; NULL for none. */
GBX_MUST_USE gbx_status gbx_check_print_text(const gbx_check_report *report, const char *replay);
GBX_MUST_USE gbx_status gbx_check_print_json(const gbx_check_report *report, const char *directory,
                                             const char *replay);

#endif
