/* The two commands that are about glassbox itself. */
#include <string.h>

#include <glassbox/glassbox.h>

#include "cli/command.h"

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

void gbx_commands_print(FILE *to) {
    fprintf(to, "usage: glassbox COMMAND [OPTIONS]\n\n"
                "Run task graphs of kernels on a simulated accelerator, and see what every task "
                "read and wrote.\n\ncommands:\n");
    for (size_t i = 0; gbx_commands[i]; ++i)
        fprintf(to, "  %-10s  %s\n", gbx_commands[i]->name, gbx_commands[i]->summary);
    fprintf(to, "\nglassbox help COMMAND describes one command.\n\nexamples:\n"
                "  glassbox run examples/vector_example --dump-tensor\n  glassbox view\n"
                "  glassbox help view\n");
}

const gbx_command *gbx_commands_find(const char *given) {
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

int gbx_commands_fail_unknown(const char *name) {
    fprintf(stderr, "glassbox: unknown command \"%s\"; see glassbox help\n", name);
    return GBX_EXIT_USAGE;
}

extern const gbx_command gbx_command_help;

/* "glassbox help NAME" is "glassbox NAME --help". */
static gbx_status print_command_help(void *line, gbx_invocation *invocation) {
    const char *const *name = line;
    const gbx_command *about = *name ? gbx_commands_find(*name) : NULL;
    char option[] = "--help";
    char *words[] = {invocation->argv[1], option, NULL};
    if (*name && !about)
        invocation->exit_code = gbx_commands_fail_unknown(*name);
    else if (!about || about == &gbx_command_help)
        gbx_commands_print(invocation->sink->out);
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
