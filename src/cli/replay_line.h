/* The command that replays a task, for reports of other commands. */
#ifndef GBX_CLI_REPLAY_LINE_H
#define GBX_CLI_REPLAY_LINE_H

#include "base/status.h"
#include "cli/open_dump.h"

/*
 * Quoted for a shell in this directory; freed by the caller. `given` is how the user named the
 * dump, NULL for the latest; `task` is what follows --task.
 */
GBX_MUST_USE gbx_status gbx_replay_line(const gbx_opened_dump *dump, const char *given,
                                        const char *task, char **out_text);

/* A text as one word of a shell's command line, as $'...' where a terminal would not show it as it
 * is; freed by the caller. NULL: no memory. */
char *gbx_shell_quote(const char *text);

#endif
