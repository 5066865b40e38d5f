/*
 * The description of a run, written to and read from the RUN record of the journal and run.json. To
 * add a field, add it to the struct and to the tables in run_info.c.
 */
#ifndef GBX_STORE_RUN_RUN_INFO_H
#define GBX_STORE_RUN_RUN_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <glassbox/dump.h>

#include "base/hash.h"
#include "base/status.h"

/* Slots that the signature of a kernel can name. */
enum { GBX_RUN_KERNEL_SLOTS = 64 };

typedef struct gbx_run_kernel {
    uint32_t func_id;
    const char *name;
    const char *core_type; /* "aic" or "aiv"; NULL when a manifest does not say */
    /* For a writer: words between commas in the order of the signature; may be NULL. */
    const char *declared;    /* "in,out,scalar:float32" */
    const char *arg_names;   /* "x,y,scale" */
    const char *object_path; /* the shared object that runs; NULL for a function */
    /* For a reader. */
    size_t signature_count;
    const char *signature[GBX_RUN_KERNEL_SLOTS];  /* as declared: "in", "scalar:float32"... */
    const char *slot_names[GBX_RUN_KERNEL_SLOTS]; /* by slot of args[]; NULL when unnamed */
    /* Only in run.json; each may be NULL. Copies: when written, paths below the dump's directory;
     * when read, paths that begin with it. The description owns both. */
    char *object;
    gbx_hash128 object_hash;   /* XXH3-128 of the shared object that ran, if there is one */
    char *source;              /* its headers included with "" are beside it as before */
    const char *origin;        /* absolute path of the source at the time of the run */
    const char *compile_flags; /* by blanks, as in scene.json */
    const char *link_flags;
} gbx_run_kernel;

typedef struct gbx_run_argument {
    const char *name; /* NULL when there is none */
    const char *role; /* "input", "output", "inout" or "scalar" */
    uint32_t dtype;   /* only for a writer: dtype of a scalar; 0 when unknown */
} gbx_run_argument;

/* How it ended; only in run.json. */
typedef struct gbx_run_result {
    const char *status; /* "running" (then nothing else is valid), "ok", "failed" */
    const char *error;  /* NULL */
    const char *code;   /* of a failure: name of its gbx_code; else NULL */
    uint64_t tasks;
    uint64_t dispatches;
    double seconds;
    gbx_dump_totals dump;
} gbx_run_result;

/* For a writer, strings are borrowed; for a reader, they live as long as the struct. Those marked
 * NULL may be NULL. */
typedef struct gbx_run_info {
    const char *generator;  /* NULL */
    const char *run_id;     /* NULL */
    const char *scene;      /* NULL */
    const char *case_name;  /* NULL */
    const char *platform;   /* NULL */
    const char *runtime;    /* NULL */
    const char *started_at; /* NULL */
    int64_t rank;
    int64_t round;
    const char *dump_level; /* "full", "partial", "hybrid", "stats"; NULL without --dump-tensor */
    bool has_args;
    const char **filters;
    size_t filter_count;
    gbx_run_kernel *kernels;
    size_t kernel_count;
    gbx_run_argument *arguments; /* of the orchestration, tensors first, then scalars */
    size_t argument_count;
    /* Only in run.json. */
    const char *command; /* NULL */
    const char *device;  /* "process", "thread" */
    const char
        *scene_path; /* absolute path of the scene's directory at the time of the run; NULL */
    uint32_t blocks; /* of the chip; 0 when unknown, like the next two */
    uint32_t threads;
    uint64_t gm_bytes;
    gbx_run_result result;
    /* Only for a reader. */
    char *path; /* of run.json; NULL for a RUN record */
    json_t *document;
} gbx_run_info;

/* Frees the lists, the paths of copies and what a reader allocated; may be all zero. */
void gbx_run_info_free(gbx_run_info *info);

/* NULL for a func_id that is not registered. */
const gbx_run_kernel *gbx_run_info_kernel(const gbx_run_info *info, uint32_t func_id);

/* The name of a slot of args[] of a task, from its first kernel that names it, in the order of
 * `func_ids` (AIC, AIV0, AIV1; UINT32_MAX for none). NULL when none does. */
const char *gbx_run_info_slot_name(const gbx_run_info *info, const uint32_t func_ids[3],
                                   uint32_t arg_index);

/*
 * Reads the `size` bytes of JSON of a RUN record; `name` stands for the journal in messages. Fails
 * with GBX_BAD_FORMAT, naming the field, when it is not what docs/format.md says. The text is not
 * needed afterwards.
 */
GBX_MUST_USE gbx_status gbx_run_info_parse(const char *name, const char *text, size_t size,
                                           gbx_run_info *out_info);

/* Reads what DIRECTORY/run.json adds to the journal, with func_id and name of each kernel. Fails in
 * the same way, and with GBX_NOT_FOUND when there is none. */
GBX_MUST_USE gbx_status gbx_run_info_load(const char *directory, gbx_run_info *out_info);

/* What is decided when a run begins. */
typedef struct gbx_run_identity {
    char run_id[17];
    char started_at[32]; /* UTC: "2026-01-31T12:00:00Z" */
} gbx_run_identity;

void gbx_run_identity_make(gbx_run_identity *identity);

/* The text of the RUN record (docs/format.md); the caller frees it. */
GBX_MUST_USE gbx_status gbx_run_record_make(const gbx_run_info *info, char **out_text);

/* Writes or replaces DIRECTORY/run.json. */
GBX_MUST_USE gbx_status gbx_run_file_write(const gbx_run_info *info, const char *directory);

#endif
