/* What the parts of the audit share: tasks, their accesses to memory, and the findings so far. */
#ifndef GBX_ANALYSIS_AUDIT_INTERNAL_H
#define GBX_ANALYSIS_AUDIT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/audit/audit.h"

/*
 * --- memory_map.c: disjoint ranges of addresses, each with what is known of its bytes: whose they
 * are, and where in the payload of that owner the range begins. Setting a range cuts those that it
 * covers in part. ---
 */

typedef struct gbx_memory_map gbx_memory_map;

typedef struct gbx_memory_range {
    uint64_t begin;
    uint64_t end; /* one past the last byte */
    uint64_t owner;
    uint64_t offset; /* of the byte at `begin`; grows with it when the range is cut, unless the map
                        says otherwise */
} gbx_memory_range;

typedef enum gbx_memory_offsets {
    GBX_OFFSETS_MOVE, /* of a range that loses n bytes at its beginning, the offset grows by n */
    GBX_OFFSETS_STAY  /* it stays as it is */
} gbx_memory_offsets;

/* Takes about 40 bytes a range. */
GBX_MUST_USE gbx_status gbx_memory_map_create(gbx_memory_offsets offsets, gbx_memory_map **out_map);
void gbx_memory_map_destroy(gbx_memory_map *map); /* takes NULL */

/*
 * begin < end; what lay there before is forgotten. Fails with GBX_EXHAUSTED when memory is out or
 * there are too many ranges; the map is then good for gbx_memory_map_destroy alone.
 */
GBX_MUST_USE gbx_status gbx_memory_map_set(gbx_memory_map *map, const gbx_memory_range *range);

/* The first range that ends after `address`; false where there is none. */
bool gbx_memory_map_find(const gbx_memory_map *map, uint64_t address, gbx_memory_range *out_range);

uint64_t gbx_memory_map_count(const gbx_memory_map *map);

/* Whether `count` ranges more, wherever they lie, leave it room for whole tensors. */
bool gbx_memory_map_has_room(const gbx_memory_map *map, uint64_t count);

void gbx_memory_map_clear(gbx_memory_map *map);

/* --- what all parts know --- */

/* A tensor that a task read when it was dispatched, or left when it completed. */
typedef struct gbx_access {
    uint64_t entry;
    uint64_t task;   /* index in `tasks` */
    uint64_t begin;  /* all bytes of its view lie in [begin, end), absolute */
    uint64_t end;    /* not above begin where it is empty */
    uint64_t buffer; /* buffer_addr */
    uint64_t offset; /* of its payload in the file */
    uint64_t stored; /* bytes of it */
    uint64_t whole;  /* bytes that it would have in all */
    uint64_t hash_low;
    uint64_t hash_high;
    uint64_t time_ns;
    uint64_t seen_ns;    /* when all of it was last seen unchanged */
    uint64_t difference; /* of it in the comparison at hand, gbx_memory_difference_of */
    uint8_t arg_index;
    bool is_write;
    bool is_contiguous; /* row-major from begin to end */
    bool has_bytes;     /* payload has its bytes as they lay in memory */
    bool has_hash;      /* of all bytes, likewise */
    bool is_followed;   /* its view lies in few enough pieces */
    bool has_race;      /* some of `races` is about it */
    bool is_read;       /* some of it was compared with what a task read */
    bool is_proven;     /* its bytes were compared with its hash */
} gbx_access;

typedef struct gbx_audit_task {
    uint64_t number; /* task_seq */
    uint64_t begin_ns;
    uint64_t end_ns; /* UINT64_MAX where it did not complete */
    uint64_t first;  /* of its accesses: reads, then writes */
    uint64_t count;
    bool is_missing; /* some of what it wrote may not be in the dump */
} gbx_audit_task;

/* Two accesses without an order: one is a write. */
typedef struct gbx_race {
    uint64_t first; /* accesses: of the two tasks the one that is first in graph order */
    uint64_t second;
    bool is_concurrent;
    bool has_no_path;
} gbx_race;

typedef struct gbx_audit_state {
    gbx_entries *entries;
    const gbx_task_graph *graph;
    gbx_audit_task *tasks; /* in graph order */
    uint64_t task_count;
    gbx_access *accesses;
    uint64_t access_count;
    gbx_race *races; /* sorted by first, second, once found */
    uint64_t race_count;
    uint64_t *races_by_second; /* the same ones, by second */
    uint64_t race_capacity;
    uint64_t finding_capacity;
    uint64_t pair_pieces; /* of all that gbx_access_map_pair was asked for */
    bool are_races_cut;   /* there are more than `races`; has_race tells of all */
    bool is_any_missing;  /* any task may have written anything */
    gbx_audit_progress progress;
    void *context;
    gbx_audit *audit;
} gbx_audit_state;

/* --- audit_accesses.c --- */

GBX_MUST_USE gbx_status gbx_audit_gather(gbx_audit_state *state);

/* --- audit_accesses.c: the pieces of memory that a view consists of --- */

/* One run of bytes; those at `offset` of the row-major payload are there. */
typedef struct gbx_byte_run {
    uint64_t begin;
    uint64_t end;
    uint64_t offset;
} gbx_byte_run;

typedef struct gbx_byte_runs {
    gbx_tensor view; /* its outer dimensions alone */
    uint64_t run_bits;
    uint64_t left;
    uint64_t next_offset; /* in the payload; of packed elements it says nothing */
    int64_t position;     /* of the next run, in bits from view.data */
    uint32_t bits;        /* of an element */
    int64_t index[GBX_MAX_DIMS];
} gbx_byte_runs;

bool gbx_byte_runs_next(gbx_byte_runs *runs, gbx_byte_run *out_run);

/* Of an access that is followed. */
GBX_MUST_USE gbx_status gbx_access_runs(gbx_audit_state *state, const gbx_access *access,
                                        gbx_byte_runs *out_runs);

/* Stops following an access that lies in more pieces than a map has room for. */
GBX_MUST_USE gbx_status gbx_access_fit(gbx_audit_state *state, const gbx_memory_map *map,
                                       gbx_access *access);

/* Makes a map of `first` alone, for comparing `second` with it. *out_is_made is false where one of
 * them is not followed, or the pieces of all pairs so far are too many. */
GBX_MUST_USE gbx_status gbx_access_map_pair(gbx_audit_state *state, const gbx_access *first,
                                            const gbx_access *second, gbx_memory_map *map,
                                            bool *out_is_made);
GBX_MUST_USE gbx_status gbx_access_view(gbx_audit_state *state, const gbx_access *access,
                                        gbx_tensor *out_view);

/* --- audit_races.c --- */

GBX_MUST_USE gbx_status gbx_audit_find_races(gbx_audit_state *state);

/* --- audit_compare.c: an access against a map of memory --- */

/* What differs between an access and one of those that the map names. */
typedef struct gbx_difference {
    uint64_t owner; /* access */
    uint64_t begin; /* the bytes that differ lie in [begin, end) */
    uint64_t end;
    uint64_t address; /* of the first, row-major */
    uint64_t offset;  /* of it in the payload of the access */
    bool is_by_hash;  /* begin to end is all that both have: bytes are not known */
} gbx_difference;

enum { GBX_WINDOW_BYTES = 1 << 18 };

typedef struct gbx_memory_comparison {
    gbx_difference *differences;
    size_t count;
    uint64_t capacity;
    uint64_t known_bytes;   /* that an owner was known of */
    uint64_t unknown_bytes; /* of them, that could not be compared */
    uint64_t begin;         /* where the first and the last of known_bytes lie */
    uint64_t end;
    bool is_same; /* one owner, byte for byte the same payload */
    uint64_t owner;
    unsigned char *windows[2]; /* what was read of the payload of both */
    uint64_t starts[2];
    uint64_t ends[2];
} gbx_memory_comparison;

GBX_MUST_USE gbx_status gbx_memory_comparison_create(gbx_memory_comparison *comparison);
void gbx_memory_comparison_free(gbx_memory_comparison *comparison);

/* All of `access`, one of the state's that is followed, against what the map knows; owners are
 * accesses, offsets those in their payload. Bytes that have not their hash are not compared. */
GBX_MUST_USE gbx_status gbx_memory_compare(gbx_audit_state *state, const gbx_memory_map *map,
                                           const gbx_access *access,
                                           gbx_memory_comparison *comparison);

/* What differs between the access compared last and an owner; NULL for nothing. */
gbx_difference *gbx_memory_difference_of(const gbx_audit_state *state,
                                         const gbx_memory_comparison *comparison, uint64_t owner);

/* The element of the access at a difference, as it is and as the map has it; the dtype always. */
GBX_MUST_USE gbx_status gbx_memory_compare_element(gbx_audit_state *state,
                                                   const gbx_memory_map *map,
                                                   const gbx_access *access,
                                                   const gbx_difference *difference,
                                                   gbx_audit_finding *finding);

/* --- audit_replay.c, audit.c --- */

GBX_MUST_USE gbx_status gbx_audit_replay(gbx_audit_state *state);
GBX_MUST_USE gbx_status gbx_audit_report_change(gbx_audit_state *state, const gbx_memory_map *map,
                                                const gbx_access *reader,
                                                const gbx_difference *difference);

#endif
