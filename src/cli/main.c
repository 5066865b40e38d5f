/* glassbox: see what every task of a task graph really read and wrote. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} command;

static int command_help(int argc, char **argv);

static const command commands[] = {
    {"run", gbx_command_run, "run a scene and compare its outputs with what is expected"},
    {"verify", gbx_command_verify, "check every hash, size and count of a dump"},
    {"recover", gbx_command_recover, "make the dump of a run that was killed whole"},
    {"platforms", gbx_command_platforms, "list the platforms a chip can be of"},
    {"version", gbx_command_version, "print the version"},
    {"help", command_help, "print this help"},
};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_help(FILE *to) {
    fprintf(to, "usage: glassbox COMMAND [OPTIONS]\n\n"
                "Runs task graphs of kernels on a simulated accelerator.\n\ncommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; ++i)
        fprintf(to, "  %-10s  %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\nglassbox COMMAND --help tells about one command.\n\nexamples:\n"
                "  glassbox run examples/vector_example --dump-tensor\n  glassbox verify\n");
}

static int command_help(int argc, char **argv) {
    (void)argc;
    (void)argv;
    print_help(stdout);
    return GBX_EXIT_OK;
}

static const char *without_dashes(const char *name) {
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-?") == 0)
        return "help";
    if (strcmp(name, "-V") == 0 || strcmp(name, "--version") == 0)
        return "version";
    return name;
}

/* What was printed has to arrive: a full disk behind stdout is not a success. */
static int flushed(int exit_code) {
    bool had_failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !had_failed)
        return exit_code;
    fprintf(stderr, "glassbox: writing to stdout: %s\n", strerror(errno));
    return GBX_EXIT_USAGE;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return GBX_EXIT_USAGE;
    }
    /* A file that may not grow is a failed write, with a sentence of its own. */
    signal(SIGXFSZ, SIG_IGN);
    const char *name = without_dashes(argv[1]);
    for (size_t i = 0; i < COMMAND_COUNT; ++i)
        if (strcmp(commands[i].name, name) == 0)
            return flushed(commands[i].run(argc - 1, argv + 1));
    fprintf(stderr, "glassbox: \"%s\" is no command; glassbox help lists them\n", argv[1]);
    return GBX_EXIT_USAGE;
}
