#include "cli/command.h"

int gbx_command_check(int argc, char **argv) {
    (void)argc;
    (void)argv;
    return GBX_EXIT_USAGE;
}
