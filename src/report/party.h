/* Tasks of a dump and their arguments, in words and in JSON, for reports that name several. */
#ifndef GBX_REPORT_PARTY_H
#define GBX_REPORT_PARTY_H

#include "analysis/audit/audit.h"
#include "report/dump.h"
#include "report/sink.h"
#include "report/table.h"

/* Where a report goes, and what it is about; borrowed. */
typedef struct gbx_reporting {
    gbx_sink *sink;
    const gbx_opened_dump *dump;
    const char *given; /* how the user named the dump; NULL for the latest */
} gbx_reporting;

/* A task and, once it was found, its argument. Texts are the sink's. */
typedef struct gbx_party {
    uint64_t task;
    uint64_t task_id;
    const char *kernel; /* NULL without a record of the task */
    uint64_t index;     /* of the entry */
    uint32_t slot;
    const char *name; /* NULL */
    uint32_t stage;
    uint64_t buffer;
    int64_t begin; /* for reports about a range of its bytes */
    int64_t end;
    gbx_tensor tensor;
} gbx_party;

/* Of the task: 3; with the argument: 7; with buffer and range: all. */
enum { GBX_PARTY_TASK_FIELDS = 3, GBX_PARTY_ARGUMENT_FIELDS = 7, GBX_PARTY_FIELDS = 10 };
extern const gbx_field gbx_party_fields[GBX_PARTY_FIELDS];

GBX_MUST_USE gbx_status gbx_party_find_task(const gbx_reporting *r, uint64_t task,
                                            gbx_party *out_party);

/* Adds the argument of an entry that is a tensor. */
GBX_MUST_USE gbx_status gbx_party_find_argument(const gbx_reporting *r, uint64_t entry,
                                                gbx_party *party);

/* Both. */
GBX_MUST_USE gbx_status gbx_party_find(const gbx_reporting *r, uint64_t task, uint64_t entry,
                                       gbx_party *out_party);

const char *gbx_text_party_task(gbx_texts *texts, const gbx_party *party); /* "task 7 (softmax)" */
const char *gbx_text_party_argument(gbx_texts *texts, const gbx_party *party); /* "argument 0 x" */

/* "argument 0 x of task 7 (softmax)" */
const char *gbx_text_party(gbx_texts *texts, const gbx_party *party);

/* The command that replays a task. */
const char *gbx_text_party_replay(const gbx_reporting *r, uint64_t task);

/* --- tasks that may have written what nobody declared --- */

/* One line each, the likeliest first, and the replay that shows whether it was that one. `when` is
 * "meanwhile" or "since". */
GBX_MUST_USE gbx_status gbx_suspects_print(const gbx_reporting *r,
                                           const gbx_audit_suspect *suspects, uint64_t count,
                                           const char *when);

/* "suspects": an array of objects. */
GBX_MUST_USE gbx_status gbx_suspects_put(const gbx_reporting *r, const gbx_audit_suspect *suspects,
                                         uint64_t count);

#endif
