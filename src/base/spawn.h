/* Starting a program of ours that kernels run in, apart from this process. */
#ifndef GBX_BASE_SPAWN_H
#define GBX_BASE_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { GBX_SPAWN_FIRST_FD = 3, GBX_SPAWN_MAX_DESCRIPTORS = 8 };

typedef struct gbx_spawn_order {
    const char *path;
    char *const *arguments; /* its name first, NULL last */
    const int *descriptors; /* open here, whatever their numbers; there GBX_SPAWN_FIRST_FD, ... */
    size_t descriptor_count;
    bool is_output_ours; /* our standard output is not for it: what it prints goes to our standard
                            error, and its input is empty; else it has our standard streams */
} gbx_spawn_order;

/*
 * The child gets the standard streams and the descriptors of the order, and nothing else of this
 * process: no descriptors, no blocked or ignored signals. A process group of its own keeps Ctrl-C
 * for us. Returns 0, or the number of the error.
 */
int gbx_spawn(const gbx_spawn_order *order, pid_t *out_pid);

#endif
