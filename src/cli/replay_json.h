/* What a replay found, for programs: the form is in docs/replay.md. */
#ifndef GBX_CLI_REPLAY_JSON_H
#define GBX_CLI_REPLAY_JSON_H

#include "base/json_writer.h"
#include "cli/replay_result.h"

/* Members of one task, into an object that is open. */
void gbx_replay_json_members(gbx_json_writer *json, const gbx_replay_result *result);

/* One document on stdout: of one task its members, of several `tasks` and how many had which
 * verdict. */
GBX_MUST_USE gbx_status gbx_replay_json_print(const gbx_replay_result *results, size_t count,
                                              bool is_list);

#endif
