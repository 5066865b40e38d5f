/*
 * The commands of glassbox.
 *
 * To add one, "hello":
 *   1. Write src/cli/hello.c: a struct for its options, a gbx_option list, a function that runs it,
 *      and `const gbx_command gbx_command_hello` (command.h says what each member means). It
 *      parses, calls what does the work, and reports to invocation->sink.
 *   2. Add its name to GBX_COMMANDS below. Help, the manual page and the completions of both shells
 *      follow from the two: the build generates them.
 *   3. Test it: tests/hello_test.py, and a line in tests/CMakeLists.txt.
 * What it prints, where more than a few lines, belongs to src/report, so that other front ends have
 * it, too. docs/man/NAME.roff may hold what its manual page says beside options and examples.
 */
#include "cli/command.h"

/* clang-format off */
#define GBX_COMMANDS(X)                                                                            \
    X(run)                                                                                         \
    X(diagnose)                                                                                    \
    X(view)                                                                                        \
    X(check)                                                                                       \
    X(replay)                                                                                      \
    X(diff)                                                                                        \
    X(blame)                                                                                       \
    X(audit)                                                                                       \
    X(verify)                                                                                      \
    X(export)                                                                                      \
    X(recover)                                                                                     \
    X(platforms)                                                                                   \
    X(version)                                                                                     \
    X(help)
/* clang-format on */

#define DECLARE(name) extern const gbx_command gbx_command_##name;
GBX_COMMANDS(DECLARE)

#define LIST(name) &gbx_command_##name,
const gbx_command *const gbx_commands[] = {GBX_COMMANDS(LIST) NULL};
