/* What a replay found, for programs: the form is in docs/replay.md. */
#ifndef GBX_CLI_REPLAY_JSON_H
#define GBX_CLI_REPLAY_JSON_H

#include "replay/replay_result.h"
#include "text/json_writer.h"

/* Members of one task, into an object that is open. */
void gbx_replay_json_members(gbx_json_writer *json, const gbx_replay_result *result);

/* A member, null where there is none. */
void gbx_replay_json_count(gbx_json_writer *json, const char *key, bool is_there, uint64_t count);
void gbx_replay_json_real(gbx_json_writer *json, const char *key, bool is_there, double value);
void gbx_replay_json_value(gbx_json_writer *json, const char *key, bool is_there, uint32_t dtype,
                           uint64_t bits);

/* One document on stdout: of one task its members, of several `tasks` and how many had which
 * verdict. */
GBX_MUST_USE gbx_status gbx_replay_json_print(const gbx_replay_result *results, size_t count,
                                              bool is_list);

#endif
