/*
 * Where a dump goes: outputs/<scene>_<case>_<YYYYmmdd_HHMMSS>[_rN], with outputs/latest pointing at
 * the newest, or a directory of the user's choice. No two dumps share a directory, even from
 * different processes.
 */
#ifndef GBX_STORE_RUN_OUTPUT_DIRECTORY_H
#define GBX_STORE_RUN_OUTPUT_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/status.h"

typedef struct gbx_output_place {
    const char *chosen; /* the user's directory: used itself for the only dump, else <case>[_rN] in
                           it; or NULL */
    const char *scene;
    const char *case_name;
    uint32_t round; /* 0: the only one */
    bool is_only;   /* there will be no other dump beside it */
    time_t time;    /* one for all dumps of a command */
} gbx_output_place;

typedef struct gbx_output_directory {
    char *path;     /* as the user would write it, from the working directory */
    bool is_made;   /* it did not exist before */
    bool is_taken;  /* it held a dump before */
    bool is_linked; /* outputs/latest points at it */
    char *previous; /* what outputs/latest pointed at before; NULL when there was none */
} gbx_output_directory;

/*
 * Creates the directory with its parents. A name that is taken gets _2, _3...; only the chosen
 * directory itself, for the only dump, is used as it is. GBX_IO names the directory that cannot be
 * created. A link that cannot be set is a warning in the log. The caller frees *out.
 */
GBX_MUST_USE gbx_status gbx_output_directory_create(const gbx_output_place *place,
                                                    gbx_output_directory *out);

/*
 * After a failed run: removes a directory that was created and is still empty, and the link. `path`
 * is NULL afterwards when the directory holds no dump of this run.
 */
void gbx_output_directory_discard(gbx_output_directory *directory);

/* May be all zero. */
void gbx_output_directory_free(gbx_output_directory *directory);

#endif
