/*
 * The line of a bug: compiles the kernels of a task with the compiler's sanitizers and calls them
 * in the memory picture of a replay, in which everything that is not an argument is poisoned.
 * What the sanitizers then report becomes findings with argument, element, file and line.
 *
 *     gbx_sanitize_report report;
 *     GBX_TRY(gbx_sanitize_task(&session, &task, GBX_SANITIZE_ALL, &report));
 *     for (size_t i = 0; i < report.finding_count; ++i)
 *         puts(gbx_text_sanitize_finding(texts, &task, &report.findings[i]));
 *     gbx_sanitize_report_free(&report);
 *
 * A sanitizer that cannot be asked (no source, no clang, untrusted source...) is no failure: the
 * report says why, and the others are asked.
 */
#ifndef GBX_REPLAY_SANITIZE_SANITIZE_H
#define GBX_REPLAY_SANITIZE_SANITIZE_H

#include "replay/findings.h"
#include "replay/session.h"
#include "text/names.h"

typedef enum gbx_sanitizer {
    GBX_SANITIZE_ACCESS = 0,  /* of global memory, exact to the byte; no runtime of a compiler */
    GBX_SANITIZE_ADDRESS = 1, /* and undefined behaviour */
    GBX_SANITIZE_MEMORY = 2,  /* uninitialised memory; needs clang */
    GBX_SANITIZE_THREAD = 3,
    GBX_SANITIZER_COUNT = 4
} gbx_sanitizer;

enum { GBX_SANITIZE_ALL = (1 << GBX_SANITIZER_COUNT) - 1 };

extern const gbx_name_set gbx_sanitizers; /* "access", "address", "memory", "thread" */

/* Those from GBX_SANITIZE_FIRST_NOTE on are no bugs by themselves. */
typedef enum gbx_sanitize_kind {
    GBX_SANITIZE_READ_OUTSIDE = 0,  /* reads memory of no argument */
    GBX_SANITIZE_WRITE_OUTSIDE = 1, /* writes memory of no argument */
    GBX_SANITIZE_WRITES_INPUT = 2,  /* writes memory of an input that is not of an output, too */
    GBX_SANITIZE_UNINITIALISED = 3, /* a branch, an address or an output depends on memory that
                                       nobody wrote */
    GBX_SANITIZE_UNDEFINED = 4,     /* undefined behaviour: overflow, shift, alignment... */
    GBX_SANITIZE_RACE = 5,
    GBX_SANITIZE_STACK = 6,  /* outside a local variable, or after its scope */
    GBX_SANITIZE_GLOBAL = 7, /* outside a global variable */
    GBX_SANITIZE_HEAP = 8,   /* outside an allocation, or after it was freed */
    GBX_SANITIZE_CRASH = 9,  /* a signal, or another end of the process */
    GBX_SANITIZE_OTHER = 10, /* any other report, such as overlapping memcpy */
    GBX_SANITIZE_FIRST_NOTE = 11,
    GBX_SANITIZE_UNWRITTEN = 11, /* an element of an output is never written */
    GBX_SANITIZE_KIND_COUNT = 12
} gbx_sanitize_kind;

extern const gbx_name_set gbx_sanitize_kinds; /* in JSON: "out_of_bounds_read"... */

enum {
    GBX_SANITIZE_WHAT_BYTES = 256,
    GBX_SANITIZE_FUNCTION_BYTES = 128,
    GBX_SANITIZE_FILE_BYTES = 1024
};

/* A line of a source; line 0: unknown. */
typedef struct gbx_sanitize_line {
    char file[GBX_SANITIZE_FILE_BYTES]; /* the user's own: relative to the scene where it lies
                                           there, else absolute */
    uint32_t line;
    uint32_t column; /* 0: unknown */
    char function[GBX_SANITIZE_FUNCTION_BYTES];
} gbx_sanitize_line;

typedef struct gbx_sanitize_finding {
    gbx_sanitize_kind kind;
    gbx_sanitizer sanitizer;
    char what[GBX_SANITIZE_WHAT_BYTES]; /* in the sanitizer's words: "shift exponent 40 is too large
                                           for 32-bit type 'int'"; may be "" */
    bool is_write;
    uint32_t bytes; /* of the access, by GBX_SANITIZE_ACCESS only those that are wrong, from the
                       first one on; 0: unknown */
    bool has_address;
    uint64_t address;    /* in the addresses of the run */
    uint32_t subtask;    /* whose kernel; GBX_SUBTASK_COUNT: unknown */
    uint32_t argument;   /* in task->arguments: the one that is accessed, or the nearest;
                            GBX_NO_ARGUMENT for none */
    uint64_t element;    /* of that argument: the one accessed, or the nearest to the access;
                            GBX_NO_ELEMENT for none */
    int64_t distance;    /* bytes between argument and access: before it (negative) or behind it,
                            where 1 is right behind; 0: within its extent */
    uint64_t elements;   /* of UNINITIALISED and UNWRITTEN outputs: how many; else 1 */
    uint32_t parties[2]; /* dispatches of the task: of the access, and of the other one of a race;
                            GBX_NO_PARTY: unknown */
    gbx_sanitize_line at;
    gbx_sanitize_line other; /* of a race: the other access */
    bool other_is_write;
    bool is_opening; /* `at` is where the function of an uninitialised variable begins: nothing
                        tells which line uses it */
    uint64_t count;  /* how many reports were alike: same kind, line and argument */
} gbx_sanitize_finding;

static inline bool gbx_sanitize_is_note(const gbx_sanitize_finding *finding) {
    return finding->kind >= GBX_SANITIZE_FIRST_NOTE;
}

typedef struct gbx_sanitize_asked {
    bool was_asked;  /* all calls returned, or a crash was reported */
    bool did_return; /* all calls, whatever was reported */
    char *why_not;   /* one sentence without period: of a sanitizer that was to be asked, or was not
                        asked completely; else NULL */
    uint64_t build_ns;
    uint64_t run_ns;
} gbx_sanitize_asked;

typedef struct gbx_sanitize_report {
    gbx_sanitize_asked asked[GBX_SANITIZER_COUNT];
    gbx_sanitize_finding *findings; /* bugs first, then in the order of the reports */
    size_t finding_count;           /* notes among them */
    size_t note_count;
    char *raw; /* all that the sanitizers and the kernels printed; never NULL after a success */
} gbx_sanitize_report;

/*
 * `sanitizers` has a bit (1 << gbx_sanitizer) for each that is asked. The session's dispatch,
 * kernels (--kernel), trust and time limit hold. Fails if the task cannot be called at all, or the
 * machine fails. Only one thread uses a session; the sanitizers run side by side, on threads of
 * their own. What is built is kept in the session, for its other tasks. The caller frees the report
 * after a success.
 */
GBX_MUST_USE gbx_status gbx_sanitize_task(gbx_replay_session *session, const gbx_replay_task *task,
                                          unsigned sanitizers, gbx_sanitize_report *out_report);
void gbx_sanitize_report_free(gbx_sanitize_report *report);

/* What the words of a task's sources tell; all false where a source cannot be read. */
typedef struct gbx_sanitize_habits {
    bool orders_blocks;      /* may: atomic operations, flags, locks, threads, assembly */
    bool reads_buffer_bytes; /* of a tensor: a dump does not have it */
} gbx_sanitize_habits;

gbx_sanitize_habits gbx_sanitize_look(const gbx_replay_session *session,
                                      const gbx_replay_task *task);

/* For the session that has it; takes NULL. */
void gbx_sanitize_cache_free(gbx_sanitize_cache *cache);

#endif
