/* The dump that a report is about, and the names of what is in it. */
#ifndef GBX_REPORT_DUMP_H
#define GBX_REPORT_DUMP_H

#include "analysis/entries.h"
#include "analysis/selection.h"
#include "report/sink.h"
#include "store/reader.h"
#include "store/verify/findings.h"

typedef struct gbx_opened_dump {
    char *directory;
    gbx_reader *reader;
    gbx_entries *entries;
} gbx_opened_dump;

/*
 * `given` is what the user named, NULL for the latest; `indexed` is what the reader indexes beside
 * arguments, GBX_INDEX_... Records and payload are open and checked to fit. A journal with a broken
 * block fails with GBX_BAD_FORMAT: how many records are readable, and that `glassbox recover` keeps
 * them; one that this version does not understand fails, too, without that advice. Records of newer
 * types that were skipped are counted on stderr. Everything is NULL on failure.
 */
GBX_MUST_USE gbx_status gbx_opened_dump_open(const char *given, unsigned indexed,
                                             gbx_opened_dump *out_dump);

/* The same with only the records of some tasks, as gbx_reader_open_tasks does it. If that fails,
 * all are read: the failure is then the same as above, with the numbers of all entries. */
GBX_MUST_USE gbx_status gbx_opened_dump_open_tasks(const char *given, unsigned indexed,
                                                   uint64_t first, uint64_t last,
                                                   gbx_opened_dump *out_dump);
void gbx_opened_dump_close(gbx_opened_dump *dump);

/* One line: scene and case, platform, runtime, level, totals, and what was lost or skipped. */
void gbx_dump_print_head(gbx_sink *sink, const gbx_opened_dump *dump);

/* The same, with the number of dispatches instead of entries and bytes. */
void gbx_dump_print_dispatch_head(gbx_sink *sink, const gbx_opened_dump *dump);

/* A line for each finding of the run; nothing without findings. */
GBX_MUST_USE gbx_status gbx_dump_print_run_findings(gbx_sink *sink, const gbx_opened_dump *dump);

/* Findings about a dump, one line each, indented; at most 20, then how many more there are and
 * `more`, where they are and a newline. */
void gbx_findings_print(gbx_sink *sink, const gbx_findings *findings, const char *more);

/*
 * Why a selection by kernel leaves nothing: `: no kernel matches "gleu"; there are gelu, add`, the
 * nearest first, at most 12, for the first name that no kernel of the dump has. Empty where every
 * name has a kernel, or the dump has no names.
 */
const char *gbx_text_unknown_kernel(gbx_texts *texts, const gbx_opened_dump *dump,
                                    const gbx_selection_names *kernels);

/* --- names; in the sink's texts, not escaped; those longer than GBX_MAX_KERNEL_NAME are cut --- */

/* "softmax", for a mix "matmul+add", "func 3" where the dump has no names. */
const char *gbx_text_kernel(gbx_texts *texts, const gbx_reader *reader,
                            const gbx_record_task *task);

/* The same for one kernel. */
const char *gbx_text_func(gbx_texts *texts, const gbx_reader *reader, uint32_t func_id);

/* "42", or "0x2a" where the dump does not number its tasks: what --task takes. */
const char *gbx_text_task(gbx_texts *texts, const gbx_reader *reader, uint64_t task,
                          uint64_t task_id);
const char *gbx_text_task_of(gbx_texts *texts, const gbx_reader *reader, const gbx_entry *entry);

/* "2 scores", or only the slot. */
const char *gbx_text_arg(gbx_texts *texts, uint32_t slot, const char *name);

/* "glassbox COMMAND DUMP REST", the dump quoted for a shell in this directory; `rest` is quoted. */
const char *gbx_text_command(gbx_texts *texts, const gbx_opened_dump *dump, const char *given,
                             const char *command, const char *rest);

/* The command that replays a task, quoted for a shell in this directory. `given` is how the user
 * named the dump, NULL for the latest; `task` is what follows --task. */
const char *gbx_text_replay(gbx_texts *texts, const gbx_opened_dump *dump, const char *given,
                            const char *task);

/* "= 0.125"; of an unknown dtype its bits and readings of them. */
const char *gbx_text_scalar(gbx_texts *texts, uint32_t dtype, uint64_t bits);

/* "[4, 128, 64]"; of a scalar gbx_text_scalar. */
const char *gbx_text_shape(gbx_texts *texts, const gbx_entry *entry);

#endif
