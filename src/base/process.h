/* Running another program and reading its output, and starting one of our programs that runs
 * kernels. No shell is involved. */
#ifndef GBX_BASE_PROCESS_H
#define GBX_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/status.h"

typedef struct gbx_process_result {
    int exit_code;   /* -1 when a signal ended it */
    int signal;      /* that signal, or 0 */
    char *out_text;  /* what it wrote to stdout; never NULL after a success */
    size_t out_size; /* without the terminating zero */
    char *err_text;  /* what it wrote to stderr */
} gbx_process_result;

/*
 * Runs `arguments` (first the program, found on PATH; last NULL) until it ends, without standard
 * input. A program that exits with an error is still a success here, with its exit code; one that
 * cannot be started is a failure.
 */
GBX_MUST_USE gbx_status gbx_process_run(char *const *arguments, gbx_process_result *out_result);

/* The same in `directory`; NULL is the current one. A program with a slash in its name is looked
 * for there, too. */
GBX_MUST_USE gbx_status gbx_process_run_in(const char *directory, char *const *arguments,
                                           gbx_process_result *out_result);
void gbx_process_result_free(gbx_process_result *result);

enum { GBX_SPAWN_FIRST_FD = 3, GBX_SPAWN_MAX_DESCRIPTORS = 8 };

typedef struct gbx_spawn_order {
    const char *path;
    char *const *arguments; /* first its name, last NULL */
    const int *descriptors; /* open here under any number; in the child GBX_SPAWN_FIRST_FD, ... */
    size_t descriptor_count;
    bool is_output_ours; /* it may not use our standard output: what it prints goes to our standard
                            error, and its input is empty; else it has our standard streams */
    bool is_silent;      /* likewise, and what it prints is lost */
    const int *error_fd; /* what becomes its standard error; NULL: ours */
    char *const *environment; /* last NULL; NULL: ours */
} gbx_spawn_order;

/*
 * The child gets the standard streams and the descriptors of the order, and nothing else from this
 * process: no other descriptors, no blocked or ignored signals. It has its own process group, so
 * Ctrl-C reaches only us. Returns 0 or an errno.
 */
int gbx_spawn(const gbx_spawn_order *order, pid_t *out_pid);

#endif
