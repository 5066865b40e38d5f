#include <stdio.h>

#include <glassbox/glassbox.h>

#include "cli/command.h"

static const struct argp parser = {.parser = gbx_command_reject,
                                   .doc = "Prints the version of glassbox."
                                          "\vexit codes: 0 done; 2 usage, or the output cannot "
                                          "be written.\n\nexamples:\n  glassbox version"};

int gbx_command_version(int argc, char **argv) {
    gbx_command_parse(&parser, "version", argc, argv, NULL);
    printf("glassbox %s\n", gbx_version());
    return GBX_EXIT_OK;
}
