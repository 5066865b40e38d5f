/* What a replay found: for people the verdict first, then tables; for programs one document. */
#ifndef GBX_CLI_REPLAY_REPORT_H
#define GBX_CLI_REPLAY_REPORT_H

#include "replay/replay_result.h"
#include "replay/swap/swap.h"

/* `run_end` is what the dump says of the end of its run, "" for nothing. */
GBX_MUST_USE gbx_status gbx_replay_report_print(const gbx_replay_result *result,
                                                const char *run_end);

/* Of several tasks: one line each. `count` is 1 and up. */
GBX_MUST_USE gbx_status gbx_replay_report_print_all(const gbx_replay_result *results, size_t count,
                                                    const char *run_end);

/* The lines below the table: what depends on chance, what else it wrote, how long it took. */
void gbx_replay_report_notes(const gbx_replay_result *result);

/* "; in 4 of 5 runs it does not leave the bits of the first"; nothing where all do. */
void gbx_replay_report_runs(const gbx_replay_result *result);

/* "kernel x crashed (...): SIGSEGV..., as in the recorded run: ..."; without a line's end. */
void gbx_replay_report_fault(const gbx_replay_result *result, const char *run_end);

/* A task run with another kernel; `files` is what the user gave, for the title. */
GBX_MUST_USE gbx_status gbx_replay_swap_print(const gbx_replay_swap *swap, const char *files,
                                              const char *run_end);
int gbx_replay_swap_exit_code(const gbx_replay_swap *swap);

/* --- JSON: the form is in docs/replay.md --- */

/* One document on stdout: of one task its members, of several `tasks` and how many had which
 * verdict. */
GBX_MUST_USE gbx_status gbx_replay_json_print(const gbx_replay_result *results, size_t count,
                                              bool is_list);
GBX_MUST_USE gbx_status gbx_replay_swap_print_json(const gbx_replay_swap *swap);

#endif
