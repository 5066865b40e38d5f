/* The directory of a saved program while it is being written. */
#ifndef GBX_REPLAY_SAVE_INTERNAL_H
#define GBX_REPLAY_SAVE_INTERNAL_H

#include "base/held_signals.h"
#include "base/staging.h"
#include "replay/engine/call_file.h"
#include "replay/save/save.h"

typedef struct gbx_save_folder {
    const gbx_replay_saving *saving;
    gbx_staging staging;
    gbx_held_signals signals;
    gbx_call_file call; /* as the engine would write it, without bytes */
    gbx_call_dispatch *dispatches;
    gbx_saved_kernels *kernels;
} gbx_save_folder;

/* Creates a file, and the folders of its path. */
GBX_MUST_USE gbx_status gbx_save_open(const gbx_save_folder *folder, const char *path,
                                      gbx_output *out_output);
GBX_MUST_USE gbx_status gbx_save_text(const gbx_save_folder *folder, const char *path,
                                      const char *text, size_t size);

GBX_MUST_USE gbx_status gbx_save_kernels(gbx_save_folder *folder);
GBX_MUST_USE gbx_status gbx_save_put_makefile(const gbx_save_folder *folder, FILE *to);

#endif
