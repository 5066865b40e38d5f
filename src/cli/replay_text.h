/* Words, indices and values as the reports of a replay have them. */
#ifndef GBX_CLI_REPLAY_TEXT_H
#define GBX_CLI_REPLAY_TEXT_H

#include <stdint.h>

#include <glassbox/tensor.h>

#include "replay/replay_result.h"
#include "text/json_writer.h"

enum { GBX_INDEX_TEXT_BYTES = GBX_MAX_DIMS * 22 + 8 };

/* "bit_exact", "differs"..., for JSON. */
const char *gbx_replay_verdict_word(gbx_replay_verdict verdict);

/* "bit exact", "writes nothing"..., for people. */
const char *gbx_replay_verdict_text(gbx_replay_verdict verdict);

/* Of one output: "bit exact", "differs", "not written"... */
const char *gbx_replay_output_word(const gbx_replay_compared *output);

/* "[3, 17]" of an element's row-major number; of a tensor of 0 dimensions "[]". */
const char *gbx_text_index(const gbx_tensor *tensor, uint64_t number,
                           char out_text[GBX_INDEX_TEXT_BYTES]);
const char *gbx_text_shape(const gbx_tensor *tensor, char out_text[GBX_INDEX_TEXT_BYTES]);

/* The value of an element, and its bits too where several have the same text: NaN and zero. */
enum { GBX_VALUE_TEXT_BYTES = 72 };
const char *gbx_text_value(uint32_t dtype, uint64_t bits, char out_text[GBX_VALUE_TEXT_BYTES]);

/* An index as JSON: an array of numbers. */
void gbx_json_index(gbx_json_writer *json, const gbx_tensor *tensor, uint64_t number);

/* To stdout, on a terminal in the colour of the verdict. */
void gbx_replay_put_word(gbx_replay_verdict verdict, const char *word);

/* 0 equal, 1 not, or not in all runs of several, 3 a fault, 2 refused. */
int gbx_replay_exit_code(const gbx_replay_result *result);

#endif
