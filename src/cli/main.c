/* glassbox: see what every task of a task graph really read and wrote. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glassbox/glassbox.h>

#include "cli/command.h"

static void print_help(FILE *to) {
    fprintf(to, "usage: glassbox COMMAND [OPTIONS]\n\n"
                "Run task graphs of kernels on a simulated accelerator, and see what every task "
                "read and wrote.\n\ncommands:\n");
    for (size_t i = 0; gbx_commands[i]; ++i)
        fprintf(to, "  %-10s  %s\n", gbx_commands[i]->name, gbx_commands[i]->summary);
    fprintf(to, "\nglassbox help COMMAND describes one command.\n\nexamples:\n"
                "  glassbox run examples/vector_example --dump-tensor\n  glassbox view\n"
                "  glassbox help view\n");
}

/* NULL where there is no such command. */
static const gbx_command *find_command(const char *given) {
    const char *name = given;
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-?") == 0)
        name = "help";
    else if (strcmp(name, "-V") == 0 || strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; gbx_commands[i]; ++i)
        if (strcmp(gbx_commands[i]->name, name) == 0)
            return gbx_commands[i];
    return NULL;
}

static int fail_unknown(const char *name) {
    fprintf(stderr, "glassbox: unknown command \"%s\"; see glassbox help\n", name);
    return GBX_EXIT_USAGE;
}

/* --- glassbox version --- */

static gbx_status print_version(void *line, gbx_invocation *invocation) {
    (void)line;
    gbx_sink_print(invocation->sink, "glassbox %s\n", gbx_version());
    return NULL;
}

const gbx_command gbx_command_version = {
    .name = "version",
    .summary = "print the version",
    .takes = "no arguments",
    .description = "Print the version of glassbox.",
    .examples = "glassbox version\n",
    .exits = {{GBX_EXIT_OK, "done"}, {GBX_EXIT_USAGE, "usage, or the output cannot be written"}},
    .run = print_version,
};

/* --- glassbox help --- */

extern const gbx_command gbx_command_help;

/* "glassbox help NAME" is "glassbox NAME --help". */
static gbx_status print_command_help(void *line, gbx_invocation *invocation) {
    const char *const *name = line;
    const gbx_command *about = *name ? find_command(*name) : NULL;
    char option[] = "--help";
    char *words[] = {invocation->argv[1], option, NULL};
    if (*name && !about)
        invocation->exit_code = fail_unknown(*name);
    else if (!about || about == &gbx_command_help)
        print_help(stdout);
    else
        invocation->exit_code = gbx_command_execute(about, invocation->sink, 2, words);
    return NULL;
}

const gbx_command gbx_command_help = {
    .name = "help",
    .summary = "print this help, or that of a command",
    .arguments = "[COMMAND]",
    .takes = "one command",
    .most = 1,
    .completion = GBX_COMPLETE_COMMAND,
    .line_bytes = sizeof(const char *),
    .description = "List all commands, or print the options and examples of one.",
    .examples = "glassbox help\nglassbox help view\n",
    .exits = {{GBX_EXIT_OK, "done"}, {GBX_EXIT_USAGE, "usage, or the output cannot be written"}},
    .run = print_command_help,
};

/* --- all --- */

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
        print_help(stderr);
        return GBX_EXIT_USAGE;
    }
    setlocale(LC_CTYPE, "");
    atexit(check_stdout);
    /* A file that may not grow is a failed write, with a sentence of its own. */
    signal(SIGXFSZ, SIG_IGN);
    gbx_sink_open(&sink, stdout);
    const gbx_command *chosen = find_command(argv[1]);
    return chosen ? gbx_command_execute(chosen, &sink, argc - 1, argv + 1) : fail_unknown(argv[1]);
}
