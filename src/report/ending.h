/* How a command ends: one sentence on stderr where it failed, and one exit code. */
#ifndef GBX_REPORT_ENDING_H
#define GBX_REPORT_ENDING_H

#include "base/status.h"

/*
 * The exit code of a command. A failure is printed to stderr as "glassbox NAME: SENTENCE" and
 * freed, and its code decides. Sentences may quote files, so they are made safe to print; lines
 * that a compiler printed stay lines.
 */
int gbx_command_end(const char *name, gbx_status status, int exit_code);

/* The same print for what is not a status, as printf; its lines stay lines. */
void gbx_command_say(const char *name, const char *format, ...) GBX_PRINTF(2, 3);

#endif
