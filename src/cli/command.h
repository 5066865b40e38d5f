/* A command of glassbox is an entry of the table in main.c and a file of its own. */
#ifndef GBX_CLI_COMMAND_H
#define GBX_CLI_COMMAND_H

/* Exit codes that every command shares. */
enum {
    GBX_EXIT_OK = 0,
    GBX_EXIT_DIFFERENT = 1,
    GBX_EXIT_USAGE = 2,
    GBX_EXIT_DEVICE = 3,
    GBX_EXIT_LOST = 4
};

/* Each gets its own name as argv[0] and returns the exit code. */
int gbx_command_platforms(int argc, char **argv);
int gbx_command_version(int argc, char **argv);

#endif
