/* The JSON of a RUN record: what was run. */
#ifndef GBX_STORE_RUN_RUN_INFO_H
#define GBX_STORE_RUN_RUN_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/status.h"

/* Slots that the signature of a kernel can name. */
enum { GBX_RUN_KERNEL_SLOTS = 64 };

typedef struct gbx_run_kernel {
    uint32_t func_id;
    const char *name;
    const char *core_type; /* "aic" or "aiv"; NULL where a manifest does not tell */
    size_t signature_count;
    const char *signature[GBX_RUN_KERNEL_SLOTS];  /* as declared: "in", "scalar:float32"... */
    const char *slot_names[GBX_RUN_KERNEL_SLOTS]; /* by slot of args[]; NULL where not named */
} gbx_run_kernel;

typedef struct gbx_run_argument {
    const char *name; /* NULL where there is none */
    const char *role; /* "input", "output", "inout" or "scalar" */
} gbx_run_argument;

/* All strings live as long as the whole; those marked so may be NULL. */
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
    json_t *document;
} gbx_run_info;

/*
 * Reads `size` bytes of JSON; `name` stands for the journal in messages. Fails with GBX_BAD_FORMAT,
 * naming the field, when it is not what docs/format.md says. The text is not needed afterwards.
 */
GBX_MUST_USE gbx_status gbx_run_info_parse(const char *name, const char *text, size_t size,
                                           gbx_run_info *out_info);
void gbx_run_info_free(gbx_run_info *info);

/* NULL for a func_id that is not registered. */
const gbx_run_kernel *gbx_run_info_kernel(const gbx_run_info *info, uint32_t func_id);

/* The name of a slot of args[] of a task: that of its first kernel, in the order of `func_ids`
 * (AIC, AIV0, AIV1; UINT32_MAX for none), that names it. NULL where none does. */
const char *gbx_run_info_slot_name(const gbx_run_info *info, const uint32_t func_ids[3],
                                   uint32_t arg_index);

#endif
