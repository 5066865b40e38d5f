/* Shared by the files of src/replay/sanitize. */
#ifndef GBX_REPLAY_SANITIZE_INTERNAL_H
#define GBX_REPLAY_SANITIZE_INTERNAL_H

#include <pthread.h>

#include "replay/engine/call_file.h"
#include "replay/sanitize/sanitize.h"

/* --- sources.c: whether a kernel can be judged by its source --- */

/* Where the compiler has a source, and where the user has it. */
typedef struct gbx_sanitize_roots {
    char *compiled;
    char *own;
} gbx_sanitize_roots;

/* Fails with the sentence that says why reports on a kernel would be wrong. */
GBX_MUST_USE gbx_status gbx_sanitize_check_source(gbx_sanitizer sanitizer,
                                                  const gbx_replay_source *source, const char *name,
                                                  bool *out_has_fences);

/* Where a copy of a source lies, and where the original was: without the parts that both paths
 * share at their end, so that included files are covered, too. NULL where they are the same. The
 * caller frees both, in any case. */
GBX_MUST_USE gbx_status gbx_sanitize_find_roots(const gbx_replay_source *source,
                                                gbx_sanitize_roots *out_roots);

/* --- build.c: the program and the kernels, compiled with a sanitizer --- */

typedef struct gbx_sanitize_compiler {
    const char *words; /* borrowed from the environment */
    bool is_clang;
} gbx_sanitize_compiler;

/* $CC as the kernels are compiled; clang where only it has the sanitizer. */
GBX_MUST_USE gbx_status gbx_sanitize_choose_compiler(gbx_sanitizer sanitizer,
                                                     gbx_sanitize_compiler *out_compiler);

/* What clang's runtimes ask for lines: its package may have it beside clang only. NULL: unknown.
 * The caller frees it. */
char *gbx_sanitize_find_symbolizer(const char *clang);

/* Both fail with the sentence that says why the sanitizer cannot be asked; the caller frees
 * *out_path after a success. */
GBX_MUST_USE gbx_status gbx_sanitize_build_program(const gbx_sanitize_compiler *with,
                                                   gbx_sanitizer sanitizer, char **out_path);
GBX_MUST_USE gbx_status gbx_sanitize_build_kernel(const gbx_sanitize_compiler *with,
                                                  gbx_sanitizer sanitizer,
                                                  const gbx_replay_source *source, const char *name,
                                                  bool has_fences, char **out_path);

/* --- cache.c: what a session has built --- */

/* What a task runs with; all is borrowed from the cache of its session. */
typedef struct gbx_sanitize_built {
    const char *program;
    const char *objects[GBX_SUBTASK_COUNT]; /* NULL: the task has no such kernel */
    const gbx_sanitize_roots *roots[GBX_SUBTASK_COUNT];
    const char *symbolizer; /* of clang: what turns addresses into lines; NULL: the usual one */
} gbx_sanitize_built;

/* Makes the session's cache, if it has none. */
GBX_MUST_USE gbx_status gbx_sanitize_cache_open(gbx_replay_session *session);

/*
 * Builds what is missing, and remembers it, failures too. Fails with the sentence that says why the
 * sanitizer cannot be asked. Several threads may build for different sanitizers; `gate` guards
 * what they share of the session.
 */
GBX_MUST_USE gbx_status gbx_sanitize_build(const gbx_replay_session *session,
                                           const gbx_replay_task *task, gbx_sanitizer sanitizer,
                                           pthread_mutex_t *gate, gbx_sanitize_built *out_built);

/* --- plan.c: which bytes belong to arguments --- */

/* Writes the plan of a call to a file descriptor. */
GBX_MUST_USE gbx_status gbx_sanitize_write_plan(const gbx_call_file *call, int fd);

/* --- run.c: the program --- */

enum { GBX_SANITIZE_TIMEOUT_MS = 10000 }; /* unless the session has another */

typedef struct gbx_sanitize_run {
    int exit_code; /* -1: a signal ended it */
    int signal;
    bool is_late;            /* it was ended because its time was over */
    char *text;              /* what it printed */
    uint64_t left_out_bytes; /* of it, before its end */
} gbx_sanitize_run;

/* `call_fd` and `plan_fd` are read from the beginning. The caller frees the text. */
GBX_MUST_USE gbx_status gbx_sanitize_start(const gbx_sanitize_built *built, int call_fd,
                                           int plan_fd, uint32_t timeout_ms,
                                           gbx_sanitize_run *out_run);

/* --- reports.c: what a sanitizer printed --- */

/* A frame of a stack; texts point into the text that is read. */
typedef struct gbx_sanitize_frame {
    const char *function;
    int function_length;
    const char *file; /* NULL: unknown */
    int file_length;
    uint32_t line;
    uint32_t column;
    uint32_t subtask; /* whose object it is in; GBX_SUBTASK_COUNT: of no kernel */
} gbx_sanitize_frame;

/* The stacks of a report that count. */
typedef enum gbx_sanitize_stack {
    GBX_STACK_ACCESS = 0,  /* of the access itself */
    GBX_STACK_OTHER = 1,   /* of the other access of a race */
    GBX_STACK_STORED = 2,  /* where an uninitialised value was last stored */
    GBX_STACK_FIRST = 3,   /* where it was first stored */
    GBX_STACK_CREATED = 4, /* where it came to be */
    GBX_STACK_COUNT = 5
} gbx_sanitize_stack;

enum { GBX_RAW_PLACES = 8 };

/* An instruction of a kernel, as an offset in its object. */
typedef struct gbx_raw_place {
    uint32_t subtask;
    uint64_t offset;
} gbx_raw_place;

typedef struct gbx_raw_report {
    gbx_sanitize_kind kind;
    char what[GBX_SANITIZE_WHAT_BYTES];
    bool is_write;
    bool other_is_write;
    uint32_t bytes;
    bool has_address;
    uint64_t address;                           /* in the memory of the call */
    uint32_t slot;                              /* of an output; GBX_CALL_SLOTS: none */
    uint64_t stained_bytes;                     /* of that output */
    uint32_t parties[2];                        /* dispatches of the call */
    gbx_sanitize_frame frames[GBX_STACK_COUNT]; /* the kernel's nearest; file NULL for none */
    bool has_frame[GBX_STACK_COUNT];
    bool is_watched;                      /* by GBX_SANITIZE_ACCESS: `address` is its first byte
                                             that breaks the plan */
    uint64_t count;                       /* how often it was seen */
    gbx_raw_place places[GBX_RAW_PLACES]; /* instead of a frame: innermost first */
    uint32_t place_count;
} gbx_raw_report;

typedef struct gbx_raw_reports {
    gbx_raw_report *items;
    size_t count;
    bool has_begun;     /* the first call */
    bool is_done;       /* all calls returned */
    uint32_t schedules; /* that were tried for dispatches that wait for each other, and... */
    uint32_t schedules_wanted;
    const char *failure; /* nothing was called; points into the text, up to its line's end */
    const char *unknown; /* likewise: a function that the sanitizer does not know */
    uint32_t unknown_of; /* the subtask whose kernel calls it */
    uint32_t exited;     /* the dispatch that called exit, or GBX_NO_PARTY */
    char *located[GBX_SUBTASK_COUNT]; /* what gbx_sanitize_locate was answered; else NULL */
} gbx_raw_reports;

/* Whether a line is the kernel's own: not that of an inlined helper of <glassbox/kernel.h>. */
bool gbx_sanitize_is_own(const gbx_sanitize_frame *frame);

/* Reads what a run printed; frames and `failure` point into `text`. The caller frees the
 * reports in any case. */
GBX_MUST_USE gbx_status gbx_sanitize_read_reports(const char *text,
                                                  const char *const objects[GBX_SUBTASK_COUNT],
                                                  gbx_raw_reports *out_reports);

void gbx_sanitize_free_reports(gbx_raw_reports *reports);

/* --- accesses.c: what watch.c says, as in plan.h --- */

/* Each takes what follows the first word of a line; the first two fill a report that is empty. */
void gbx_sanitize_read_access(const char *text, gbx_raw_report *report);
void gbx_sanitize_read_crash(const char *text, gbx_raw_report *report);
void gbx_sanitize_read_times(const char *text, gbx_raw_reports *reports);

/* --- locate.c: lines of instructions --- */

/*
 * Turns places of reports into frames: asks addr2line, else built->symbolizer or the
 * llvm-symbolizer on PATH. Without any of them, lines stay unknown.
 */
GBX_MUST_USE gbx_status gbx_sanitize_locate(const gbx_sanitize_built *built,
                                            gbx_raw_reports *reports);

/* --- place.c: whose memory it is --- */

/* Sets argument, element and distance of an access, and turns its address into one of the run.
 * `call` has the tensors where they were placed. */
void gbx_sanitize_place(const gbx_replay_task *task, const gbx_call_file *call,
                        gbx_sanitize_finding *finding);

/* The same where the argument is known. */
void gbx_sanitize_place_in(const gbx_replay_task *task, const gbx_call_file *call,
                           uint32_t argument, gbx_sanitize_finding *finding);

/* The index of the argument in a slot; GBX_NO_ARGUMENT for none. */
uint32_t gbx_sanitize_argument(const gbx_replay_task *task, uint32_t slot);

/* --- findings.c: reports as findings --- */

/* All that is known of a run under one sanitizer. */
typedef struct gbx_sanitize_context {
    const gbx_replay_session *session;
    const gbx_replay_task *task;
    const gbx_sanitize_built *built;
    const gbx_call_file *call;
    gbx_sanitizer sanitizer;
} gbx_sanitize_context;

/* Adds what is new in the reports of a run, and how it ended, to a report that grows. */
GBX_MUST_USE gbx_status gbx_sanitize_add(const gbx_sanitize_context *context,
                                         const gbx_sanitize_run *run, gbx_sanitize_report *report);

#endif
