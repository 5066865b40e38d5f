/*
 * One line on stderr that tells what is going on, rewritten in place: only on a terminal, and only
 * from the third second on. A thread of its own draws it; all calls come from one other thread.
 */
#ifndef GBX_CLI_PROGRESS_H
#define GBX_CLI_PROGRESS_H

#include <stdint.h>

typedef struct gbx_progress gbx_progress;

/* NULL where there is nothing to show it on; all of these take it. */
gbx_progress *gbx_progress_start(void);
void gbx_progress_stop(gbx_progress *progress);

/* What begins now; `of_case` may be NULL. Both are copied. */
void gbx_progress_phase(gbx_progress *progress, const char *of_case, const char *what);

void gbx_progress_tasks(gbx_progress *progress, uint64_t tasks);

/* Takes the line away, for something else to be printed; it comes back by itself. */
void gbx_progress_hide(gbx_progress *progress);

#endif
