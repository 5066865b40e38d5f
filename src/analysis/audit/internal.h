/* Shared by the parts of the audit: tasks, their accesses to memory, and the findings so far. */
#ifndef GBX_ANALYSIS_AUDIT_INTERNAL_H
#define GBX_ANALYSIS_AUDIT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/audit/audit.h"
#include "analysis/byte_runs.h"
#include "analysis/memory_map.h"

/* --- shared state --- */

/* A tensor that a task read at dispatch, or left at completion. */
typedef struct gbx_access {
    uint64_t entry;
    uint64_t task;   /* index in `tasks` */
    uint64_t begin;  /* all bytes of its view lie in [begin, end), absolute */
    uint64_t end;    /* not above begin if it is empty */
    uint64_t buffer; /* buffer_addr */
    uint64_t offset; /* of its payload in the file */
    uint64_t stored; /* bytes of payload */
    uint64_t whole;  /* bytes of the complete payload */
    uint64_t hash_low;
    uint64_t hash_high;
    uint64_t time_ns;
    uint64_t seen_ns;       /* when all of it was last seen unchanged */
    uint64_t difference;    /* in the current comparison; see gbx_memory_difference_of */
    uint64_t first_link;    /* of its races, if it has any */
    uint64_t tensor_offset; /* of a piece of a result: its first byte in the tensor; else 0 */
    uint8_t arg_index;
    uint8_t dtype;
    bool is_result; /* a piece of a result: entry is its position, and it has no task */
    bool is_write;
    bool is_contiguous; /* row-major from begin to end */
    bool has_bytes;     /* payload has its bytes as in memory */
    bool has_hash;      /* of all bytes, as in memory */
    bool is_followed;   /* its view has few enough pieces */
    bool has_race;      /* a race involves it, kept in `races` or not */
    bool is_read;       /* some of it was compared with what a task read */
    bool is_proven;     /* its bytes were compared with its hash */
} gbx_access;

typedef struct gbx_audit_task {
    uint64_t number; /* task_seq */
    uint64_t begin_ns;
    uint64_t end_ns; /* UINT64_MAX if it did not complete */
    uint64_t first;  /* of its accesses: reads, then writes */
    uint64_t count;
    bool is_missing; /* the dump may lack some of its outputs */
} gbx_audit_task;

/* Two unordered accesses, at least one a write. */
typedef struct gbx_race {
    uint64_t first; /* access of the task that is first in graph order */
    uint64_t second;
    bool is_concurrent;
    bool has_no_path;
} gbx_race;

/* One of the two accesses of a race. */
typedef struct gbx_race_link {
    uint64_t access;
    uint64_t race; /* index in `races` */
} gbx_race_link;

/* The difference between an access and one owner in the map. */
typedef struct gbx_difference {
    uint64_t owner; /* an access */
    uint64_t begin; /* the bytes that differ lie in [begin, end) */
    uint64_t end;
    uint64_t address; /* of the first one, row-major */
    uint64_t offset;  /* of the first one in the payload of the access */
    bool is_by_hash;  /* only hashes differ: [begin, end) is all that both share */
} gbx_difference;

enum { GBX_WINDOW_BYTES = 1 << 18 };

typedef struct gbx_memory_comparison {
    gbx_difference *differences;
    size_t count;
    uint64_t capacity;
    uint64_t known_bytes;   /* bytes with a known owner */
    uint64_t unknown_bytes; /* of these, bytes that could not be compared */
    uint64_t begin;         /* of the range that holds known_bytes */
    uint64_t end;
    bool is_same; /* one owner, with the same payload layout byte for byte */
    uint64_t owner;
    unsigned char *windows[2]; /* parts of both payloads */
    uint64_t starts[2];
    uint64_t ends[2];
} gbx_memory_comparison;

typedef struct gbx_audit_state {
    gbx_entries *entries;
    const gbx_task_graph *graph;
    gbx_audit_task *tasks; /* in graph order */
    uint64_t task_count;
    gbx_access *accesses; /* pieces of results follow the last one */
    uint64_t access_count;
    uint64_t piece_count;
    gbx_race *races; /* sorted by first, second, once found */
    uint64_t race_count;
    gbx_race_link *links; /* two for each race, sorted by access */
    uint64_t race_capacity;
    uint64_t finding_capacity;
    uint64_t pair_pieces; /* of all calls of gbx_access_map_pair */
    bool are_races_cut;   /* `races` is not complete; has_race is */
    bool is_any_missing;  /* any task may have written anything */
    gbx_memory_map *map;  /* owners are accesses, offsets are in their payload */
    gbx_memory_comparison comparison;
    gbx_audit_progress progress;
    void *context;
    gbx_audit *audit;
} gbx_audit_state;

/* --- audit_accesses.c --- */

GBX_MUST_USE gbx_status gbx_audit_gather(gbx_audit_state *state);

/* The access must be followed. */
GBX_MUST_USE gbx_status gbx_access_runs(gbx_audit_state *state, const gbx_access *access,
                                        gbx_byte_runs *out_runs);

/* Stops following an access that has more pieces than the map has room for. */
GBX_MUST_USE gbx_status gbx_access_fit(gbx_audit_state *state, const gbx_memory_map *map,
                                       gbx_access *access);

/* Makes the state's map one of only `first`, to compare `second` with. *out_is_made is false if one
 * of them is not followed, or all pairs so far have too many pieces. */
GBX_MUST_USE gbx_status gbx_access_map_pair(gbx_audit_state *state, const gbx_access *first,
                                            const gbx_access *second, bool *out_is_made);
GBX_MUST_USE gbx_status gbx_access_view(gbx_audit_state *state, const gbx_access *access,
                                        gbx_tensor *out_view);

/* --- audit_replay.c --- */

/* What explains a difference between an access and what was left there. */
typedef enum gbx_change {
    GBX_CHANGE_UNDECLARED,
    GBX_CHANGE_RACED,  /* a writer of these bytes ran at the same time */
    GBX_CHANGE_MISSING /* a task ran since whose outputs are not all in the dump, or may not be */
} gbx_change;

/* `raced` is the access whose races count: the reader or, of a result, the last writer. */
gbx_change gbx_audit_explain(const gbx_audit_state *state, uint64_t raced, const gbx_access *reader,
                             const gbx_difference *difference);

/* --- audit_results.c --- */

/* Adds the results of the run to the accesses; there is room for `pieces`. */
GBX_MUST_USE gbx_status gbx_audit_count_pieces(gbx_reader *reader, uint64_t *out_pieces);
GBX_MUST_USE gbx_status gbx_audit_gather_results(gbx_audit_state *state, gbx_reader *reader);

/* Compares them with the map, as it is at the end of the run. */
GBX_MUST_USE gbx_status gbx_audit_compare_results(gbx_audit_state *state);

/* --- audit_races.c --- */

GBX_MUST_USE gbx_status gbx_audit_find_races(gbx_audit_state *state);

/* --- audit_compare.c: compares an access with the state's map --- */

GBX_MUST_USE gbx_status gbx_memory_comparison_create(gbx_memory_comparison *comparison);
void gbx_memory_comparison_free(gbx_memory_comparison *comparison);

/* Compares all of `access`, which must be followed; the result is state->comparison. Payload whose
 * hash does not match is not compared. */
GBX_MUST_USE gbx_status gbx_memory_compare(gbx_audit_state *state, const gbx_access *access);

/* The difference between the last compared access and an owner; NULL if they are equal. */
gbx_difference *gbx_memory_difference_of(const gbx_audit_state *state, uint64_t owner);

/* Sets the dtype of the finding and, if known, the element at a difference: as found in the access,
 * and as expected by the map. */
GBX_MUST_USE gbx_status gbx_memory_compare_element(gbx_audit_state *state, const gbx_access *access,
                                                   const gbx_difference *difference,
                                                   gbx_audit_finding *finding);

/* --- audit_replay.c, audit.c --- */

GBX_MUST_USE gbx_status gbx_audit_replay(gbx_audit_state *state);
/* Bytes that somebody wrote without declaring it, and when. */
typedef struct gbx_suspicion {
    uint64_t begin; /* the bytes, absolute */
    uint64_t end;
    uint64_t after_ns; /* tasks that ran in between are suspects: */
    uint64_t before_ns;
    uint64_t except; /* but this one, an index in `tasks`; UINT64_MAX for none */
} gbx_suspicion;

/* The likeliest GBX_AUDIT_SUSPECTS, and how many there are. */
GBX_MUST_USE gbx_status gbx_audit_find_suspects(gbx_audit_state *state,
                                                const gbx_suspicion *suspicion,
                                                gbx_audit_suspect *out_suspects,
                                                uint64_t *out_count);

GBX_MUST_USE gbx_status gbx_audit_report_change(gbx_audit_state *state, const gbx_access *reader,
                                                const gbx_difference *difference);

#endif
