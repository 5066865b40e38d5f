/*
 * Who may touch a journal: the run that writes it holds an exclusive flock on tensor_dump.rec from
 * its creation until it is closed. The system lets go of it when the process ends, however it ends.
 */
#ifndef GBX_STORE_JOURNAL_JOURNAL_LOCK_H
#define GBX_STORE_JOURNAL_JOURNAL_LOCK_H

#include "base/status.h"

typedef enum gbx_journal_use {
    GBX_JOURNAL_READS,  /* shared with others that read */
    GBX_JOURNAL_REPAIRS /* alone, and opened for writing */
} gbx_journal_use;

/*
 * Opens the journal of a dump and locks it without waiting; closing *out_fd lets go. *out_fd is -1
 * on failure: GBX_NOT_FOUND when there is no journal, GBX_UNSUPPORTED when somebody else holds it,
 * GBX_IO when the system refuses. Where the file system has no locks, none is taken.
 */
GBX_MUST_USE gbx_status gbx_journal_lock(const char *directory, gbx_journal_use use, int *out_fd);

#endif
