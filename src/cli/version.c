#include <argp.h>
#include <stdio.h>

#include <glassbox/glassbox.h>

#include "cli/command.h"

static const struct argp parser = {.doc = "Prints the version of glassbox."};

int gbx_command_version(int argc, char **argv) {
    char name[] = "glassbox version";
    argv[0] = name;
    argp_err_exit_status = GBX_EXIT_USAGE;
    if (argp_parse(&parser, argc, argv, 0, NULL, NULL) != 0)
        return GBX_EXIT_USAGE;
    printf("glassbox %s\n", gbx_version());
    return GBX_EXIT_OK;
}
