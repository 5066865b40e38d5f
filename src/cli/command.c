#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>

void gbx_command_parse(const struct argp *parser, const char *name, int argc, char **argv,
                       void *input) {
    char full_name[64];
    snprintf(full_name, sizeof full_name, "glassbox %s", name);
    char *given_name = argv[0];
    argv[0] = full_name;
    argp_err_exit_status = GBX_EXIT_USAGE;
    if (argp_parse(parser, argc, argv, 0, NULL, input) != 0)
        exit(GBX_EXIT_USAGE);
    argv[0] = given_name;
}

error_t gbx_command_reject(int key, char *argument, struct argp_state *state) {
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    argp_error(state, "\"%s\" is not expected; this command takes no argument", argument);
    return EINVAL;
}
