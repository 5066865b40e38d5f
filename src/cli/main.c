/* glassbox: see what every task of a task graph really read and wrote. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glassbox/glassbox.h>

#include "cli/internal.h"

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} command;

static int command_help(int argc, char **argv);
static int command_version(int argc, char **argv);

static const command commands[] = {
    {"run", gbx_command_run, "run a scene and compare its outputs with what is expected"},
    {"view", gbx_command_view, "show what a dump holds: a list, or one tensor's values"},
    {"check", gbx_command_check, "say which task is the first that is wrong for its own inputs"},
    {"replay", gbx_command_replay, "call the kernels of one task again, alone"},
    {"diff", gbx_command_diff, "compare two dumps, task by task"},
    {"audit", gbx_command_audit, "find writes that nobody declared, and reads that came too early"},
    {"verify", gbx_command_verify, "check every hash, size and count of a dump"},
    {"export", gbx_command_export, "write values to one archive, or for another tool"},
    {"recover", gbx_command_recover, "make the dump of a run that was killed whole"},
    {"platforms", gbx_command_platforms, "list the platforms a chip can be of"},
    {"version", command_version, "print the version"},
    {"help", command_help, "print this help, or that of a command"},
};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_help(FILE *to) {
    fprintf(to, "usage: glassbox COMMAND [OPTIONS]\n\n"
                "Runs task graphs of kernels on a simulated accelerator.\n\ncommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; ++i)
        fprintf(to, "  %-10s  %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\nglassbox help COMMAND tells about one command.\n\nexamples:\n"
                "  glassbox run examples/vector_example --dump-tensor\n  glassbox view\n"
                "  glassbox help view\n");
}

/* NULL for none. */
static const command *find_command(const char *given) {
    const char *name = given;
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-?") == 0)
        name = "help";
    else if (strcmp(name, "-V") == 0 || strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; i < COMMAND_COUNT; ++i)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int fail_no_command(const char *name) {
    fprintf(stderr, "glassbox: \"%s\" is no command; glassbox help lists them\n", name);
    return GBX_EXIT_USAGE;
}

/* "glassbox help NAME" is "glassbox NAME --help". */
static int command_help(int argc, char **argv) {
    const command *about = argc > 1 ? find_command(argv[1]) : NULL;
    if (argc > 2) {
        fprintf(stderr, "glassbox help: \"%s\" is not expected; help is of one command at a time\n",
                argv[2]);
        return GBX_EXIT_USAGE;
    }
    if (argc > 1 && !about)
        return fail_no_command(argv[1]);
    if (!about || about->run == command_help) {
        print_help(stdout);
        return GBX_EXIT_OK;
    }
    char option[] = "--help";
    char *words[] = {argv[1], option, NULL};
    return about->run(2, words);
}

static int command_version(int argc, char **argv) {
    static const struct argp parser = {.parser = gbx_command_reject,
                                       .doc = "Prints the version of glassbox."
                                              "\vexit codes: 0 done; 2 usage, or the output "
                                              "cannot be written.\n\nexamples:\n  glassbox "
                                              "version"};
    gbx_command_parse(&parser, "version", argc, argv, NULL);
    printf("glassbox %s\n", gbx_version());
    return GBX_EXIT_OK;
}

/* What was printed has to arrive: a full disk behind stdout is not a success. At every exit, for
 * the parser of options prints help and ends by itself. */
static void check_stdout(void) {
    bool had_failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !had_failed)
        return;
    fprintf(stderr, "glassbox: writing to stdout: %s\n", strerror(errno));
    _exit(GBX_EXIT_USAGE);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return GBX_EXIT_USAGE;
    }
    setlocale(LC_CTYPE, "");
    atexit(check_stdout);
    /* A file that may not grow is a failed write, with a sentence of its own. */
    signal(SIGXFSZ, SIG_IGN);
    const command *chosen = find_command(argv[1]);
    return chosen ? chosen->run(argc - 1, argv + 1) : fail_no_command(argv[1]);
}
