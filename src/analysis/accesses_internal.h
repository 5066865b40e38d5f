/* The index of accesses, shared by the files that create it and search in it. */
#ifndef GBX_ANALYSIS_ACCESSES_INTERNAL_H
#define GBX_ANALYSIS_ACCESSES_INTERNAL_H

#include "analysis/accesses.h"

/* What a place is, in `form`; any other number is the hash of a view with gaps. */
enum {
    GBX_FORM_WHOLE = 0, /* the view has all bytes from begin to end */
    GBX_FORM_PIECE = 1, /* of a result, which has them, too */
    GBX_FORM_COUNT = 2
};

typedef struct gbx_place {
    uint64_t begin; /* all bytes of the view lie in [begin, end) */
    uint64_t end;
    uint64_t form;
    uint64_t reach; /* the largest end in its subtree */
    uint32_t first; /* of its uses, in `order` */
    uint32_t count;
} gbx_place;

typedef struct gbx_use {
    uint64_t task;   /* task_seq; UINT64_MAX for a piece of a result */
    uint32_t entry;  /* of a piece: the position of its result */
    uint32_t detail; /* gbx_role; of a piece: its number in the result */
} gbx_use;

typedef struct gbx_addresses {
    uint64_t begin;
    uint64_t end;
} gbx_addresses;

struct gbx_accesses {
    gbx_entries *entries;
    gbx_reader *reader;
    gbx_place *places;
    uint64_t place_count;
    gbx_use *uses; /* in the order of entries, and so of tasks; then pieces of results */
    uint64_t use_count;
    uint64_t task_use_count; /* without pieces */
    uint32_t *order;         /* indices of uses, those of each place together and ascending */
    struct gbx_readers_scratch *scratch; /* of searches for readers; NULL until the first */
};

/* --- accesses.c --- */

typedef gbx_status (*gbx_place_visitor)(gbx_accesses *accesses, uint64_t place, void *context);

/* Visits the places in [low, high) whose extent shares a byte with the range. */
GBX_MUST_USE gbx_status gbx_accesses_visit(gbx_accesses *accesses, uint64_t low, uint64_t high,
                                           gbx_addresses wanted, gbx_place_visitor visit,
                                           void *context);

/* The first use of a task from `task` on, or after it. */
uint64_t gbx_accesses_find_use(const gbx_accesses *accesses, uint64_t task, bool is_after);

/* How many uses of a place come before a use of any place. */
uint32_t gbx_accesses_count_before(const gbx_accesses *accesses, const gbx_place *p,
                                   uint64_t use_index);

static inline const gbx_use *gbx_accesses_use_at(const gbx_accesses *accesses, const gbx_place *p,
                                                 uint32_t number) {
    return &accesses->uses[accesses->order[p->first + number]];
}

/* The view of an argument, by its use. */
GBX_MUST_USE gbx_status gbx_accesses_read_view(const gbx_accesses *accesses, uint32_t use_index,
                                               gbx_tensor *out_view);

/* Describes an argument with an element of its view. */
GBX_MUST_USE gbx_status gbx_accesses_fill(gbx_accesses *accesses, const gbx_use *u,
                                          const gbx_tensor *view, uint64_t element,
                                          gbx_tensor_access *out_access);

static inline gbx_status gbx_accesses_fail_changed(void) {
    return gbx_fail(GBX_BAD_FORMAT, "the dump changed while it was being read");
}

/* --- accesses_readers.c --- */

void gbx_readers_scratch_free(struct gbx_readers_scratch *scratch); /* takes NULL */

#endif
