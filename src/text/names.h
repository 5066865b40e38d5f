/*
 * Small sets with names: roles, stages, kinds, subtasks, levels, causes of loss, reasons to skip.
 * Code works with the numbers; names are for files and people, and each is in one row of one table
 * here. The numbers are those of the journal: a row keeps its number for ever, a new one goes to
 * the end.
 */
#ifndef GBX_TEXT_NAMES_H
#define GBX_TEXT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When an argument was captured; GBX_STAGE_NONE when there is no stage. */
enum { GBX_STAGE_BEFORE = 0, GBX_STAGE_AFTER = 1, GBX_STAGE_COUNT = 2, GBX_STAGE_NONE = 0xff };

enum { GBX_ARG_NONE = 0xff }; /* arg_index of a record about a complete task */

/* Of an entry, the first two; of an argument of a dispatch also a word, which may be either. */
enum { GBX_KIND_TENSOR = 0, GBX_KIND_SCALAR = 1, GBX_KIND_COUNT = 2, GBX_KIND_WORD = 2 };

/* What a signature says of a parameter: a role (gbx_role) of a tensor, or this. */
enum { GBX_PARAMETER_SCALAR = 3, GBX_PARAMETER_COUNT = 4 };

/* Why records are missing. */
typedef enum gbx_loss_cause {
    GBX_LOSS_STALL = 0,
    GBX_LOSS_DISK = 1,
    GBX_LOSS_CORRUPT = 2,
    GBX_LOSS_DEVICE = 3,
    GBX_LOSS_UNKNOWN = 4, /* a manifest of another tool counts it and gives no cause */
    GBX_LOSS_CAUSE_COUNT = 5
} gbx_loss_cause;

/* Why a task or an argument was not captured. */
typedef enum gbx_skip_reason {
    GBX_SKIP_NOT_DESCRIBED = 0, /* a task */
    GBX_SKIP_MISMATCH = 1,
    GBX_SKIP_TENSOR_NOT_DESCRIBED = 2, /* an argument; in the journal GBX_SKIP_NOT_DESCRIBED */
    GBX_SKIP_REASON_COUNT = 3
} gbx_skip_reason;

/* What a thread of the device waited for, a bit each. */
enum {
    GBX_WAITED_LINES = 1u << 0, /* a metadata buffer */
    GBX_WAITED_ARENA = 1u << 1, /* room for payload */
    GBX_WAITED_COPY = 1u << 2,  /* the host, which copied for another thread */
    GBX_WAITED_ALL = 7
};

typedef struct gbx_name {
    const char *name;     /* in files and in options; NULL: the number has no name */
    const char *brief;    /* in narrow columns and signatures; options take it, too */
    const char *sentence; /* for people; NULL where the name says it all */
} gbx_name;

typedef struct gbx_name_set {
    const gbx_name *rows; /* by number */
    uint32_t count;
} gbx_name_set;

extern const gbx_name_set gbx_roles;                   /* gbx_role: "input" */
extern const gbx_name_set gbx_parameters;              /* the same, and GBX_PARAMETER_SCALAR */
extern const gbx_name_set gbx_stages;                  /* "before_dispatch" */
extern const gbx_name_set gbx_kinds;                   /* "tensor", "scalar" */
extern const gbx_name_set gbx_slot_kinds;              /* the same, and "word" */
extern const gbx_name_set gbx_subtasks;                /* gbx_subtask: "aic", "aiv0", "aiv1" */
extern const gbx_name_set gbx_core_types;              /* gbx_core_type: "aic", "aiv" */
extern const gbx_name_set gbx_dump_levels;             /* gbx_dump_level: "full"; off has none */
extern const gbx_name_set gbx_loss_causes;             /* gbx_loss_cause: "stall" */
extern const gbx_name_set gbx_skip_reasons;            /* gbx_skip_reason: "undescribed" */
extern const gbx_name_set gbx_run_finding_kinds;       /* gbx_run_finding_kind: "overrun" */
extern const gbx_name_set gbx_run_finding_places;      /* "run_argument" */
extern const gbx_name_set gbx_run_finding_certainties; /* "sure" */

/* NULL for a number that is not in the set: it may come from a file. */
const char *gbx_name_of(const gbx_name_set *set, uint32_t number);
const char *gbx_name_brief(const gbx_name_set *set, uint32_t number);
const char *gbx_name_sentence(const gbx_name_set *set, uint32_t number);

/* The number of a name, or of a brief one. */
bool gbx_name_find(const gbx_name_set *set, const char *text, uint32_t *out_number);

/* "input, output, inout, in, out": what gbx_name_find takes, cut at `capacity`. */
void gbx_name_list(const gbx_name_set *set, char *out_text, size_t capacity);

#endif
