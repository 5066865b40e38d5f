/*
 * One line on stderr that says what is going on, rewritten in place: only on a terminal, and only
 * from the third second on. A thread draws it; all calls come from one other thread.
 */
#ifndef GBX_REPORT_PROGRESS_H
#define GBX_REPORT_PROGRESS_H

#include <stdint.h>

typedef struct gbx_progress gbx_progress;

/* NULL where there is no terminal; all of these accept NULL. `what` begins first; NULL. */
gbx_progress *gbx_progress_start(const char *what);
void gbx_progress_stop(gbx_progress *progress);

/* What begins now; `of_case` may be NULL. Both are copied. */
void gbx_progress_phase(gbx_progress *progress, const char *of_case, const char *what);

/* How much of it is done: "3 of 10 tasks", "3 tasks done" where `all` is 0. `unit` is one of them,
 * a constant: "task"; NULL: bytes. */
void gbx_progress_count(gbx_progress *progress, uint64_t done, uint64_t all, const char *unit);

/* The same as a callback; `context` is a gbx_progress, the unit an entry. */
void gbx_progress_entries(void *context, uint64_t done, uint64_t all);

/* Removes the line so that something else can be printed; it comes back by itself. */
void gbx_progress_hide(gbx_progress *progress);

#endif
