/* A command of glassbox is an entry of the table in main.c and a file of its own. */
#ifndef GBX_CLI_COMMAND_H
#define GBX_CLI_COMMAND_H

#include <argp.h>

#include "base/status.h"

/* Exit codes that every command shares. */
enum { GBX_EXIT_OK = 0, GBX_EXIT_DIFFERS = 1, GBX_EXIT_USAGE = 2 };

/*
 * Parses the options of a command called "glassbox NAME"; exits with GBX_EXIT_USAGE and one
 * sentence when they are wrong. `input` goes to the parser's function.
 */
void gbx_command_parse(const struct argp *parser, const char *name, int argc, char **argv,
                       void *input);

/* A parser's function for a command without options or arguments, and the end of all others. */
error_t gbx_command_reject(int key, char *argument, struct argp_state *state);

/*
 * Prints "glassbox NAME: SENTENCE" to stderr. Sentences have texts of files in them, so they are
 * escaped as gbx_terminal_escape does it, in the locale of the environment; lines of what a
 * compiler said stay lines. The status stays the caller's.
 */
void gbx_command_fail(const char *name, gbx_status status);

/* The same for what is no status, as printf has it; its lines stay lines. */
void gbx_command_say(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each gets its own name as argv[0] and returns the exit code. */
int gbx_command_audit(int argc, char **argv);
int gbx_command_check(int argc, char **argv);
int gbx_command_diff(int argc, char **argv);
int gbx_command_export(int argc, char **argv);
int gbx_command_platforms(int argc, char **argv);
int gbx_command_recover(int argc, char **argv);
int gbx_command_replay(int argc, char **argv);
int gbx_command_run(int argc, char **argv);
int gbx_command_verify(int argc, char **argv);
int gbx_command_version(int argc, char **argv);
int gbx_command_view(int argc, char **argv);

#endif
