/* glassbox: see what every task of a task graph really read and wrote. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

/* What was printed must arrive: a full disk behind stdout is not a success. At every exit, because
 * the parser of options prints help and ends by itself. */
static void check_stdout(void) {
    bool had_failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !had_failed)
        return;
    fprintf(stderr, "glassbox: writing to stdout: %s\n", strerror(errno));
    _exit(GBX_EXIT_USAGE);
}

int main(int argc, char **argv) {
    static gbx_sink sink; /* too large for a stack */
    if (argc < 2) {
        gbx_commands_print(stderr);
        return GBX_EXIT_USAGE;
    }
    setlocale(LC_CTYPE, "");
    atexit(check_stdout);
    /* A file that may not grow is a failed write, with a sentence of its own. */
    signal(SIGXFSZ, SIG_IGN);
    gbx_sink_open(&sink, stdout);
    const gbx_command *chosen = gbx_commands_find(argv[1]);
    return chosen ? gbx_command_execute(chosen, &sink, argc - 1, argv + 1)
                  : gbx_commands_fail_unknown(argv[1]);
}
