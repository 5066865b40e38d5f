#include "cli/replay_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/array_text.h"
#include "cli/command.h"
#include "cli/terminal.h"

#define RED "\x1b[31m"
#define GREEN "\x1b[32m"
#define YELLOW "\x1b[33m"
#define PLAIN "\x1b[0m"

enum { EXIT_FAULT = 3 };

/* What is said of a verdict. */
typedef struct words {
    const char *json;
    const char *text;
    const char *colour;
    int exit_code;
} words;

static const words words_of[GBX_REPLAY_VERDICT_COUNT] = {
    [GBX_REPLAY_EXACT] = {"bit_exact", "bit exact", GREEN, GBX_EXIT_OK},
    [GBX_REPLAY_PARTLY] = {"equal_where_written", "equal where written", YELLOW, GBX_EXIT_OK},
    [GBX_REPLAY_DIFFERS] = {"differs", "differs", RED, GBX_EXIT_DIFFERS},
    [GBX_REPLAY_NOTHING_WRITTEN] = {"nothing_written", "writes nothing", RED, GBX_EXIT_DIFFERS},
    [GBX_REPLAY_NOT_COMPARED] = {"not_compared", "not compared", YELLOW, GBX_EXIT_DIFFERS},
    [GBX_REPLAY_FAULT] = {"fault", "fault", RED, EXIT_FAULT},
    [GBX_REPLAY_REFUSED] = {"not_replayed", "not replayed", RED, GBX_EXIT_USAGE}};

const char *gbx_replay_verdict_word(gbx_replay_verdict verdict) {
    return words_of[verdict].json;
}

const char *gbx_replay_verdict_text(gbx_replay_verdict verdict) {
    return words_of[verdict].text;
}

int gbx_replay_exit_code(const gbx_replay_result *result) {
    int code = words_of[result->verdict].exit_code;
    return code == GBX_EXIT_OK && result->times.different > 0 ? GBX_EXIT_DIFFERS : code;
}

void gbx_replay_put_word(gbx_replay_verdict verdict, const char *word) {
    bool is_coloured = gbx_terminal_has_colour();
    printf("%s%s%s", is_coloured ? words_of[verdict].colour : "", word, is_coloured ? PLAIN : "");
}

const char *gbx_replay_output_word(const gbx_replay_compared *output) {
    if (!output->is_compared)
        return "not in the dump";
    if (output->bits.mismatches > 0)
        return "differs";
    if (output->is_exact)
        return "bit exact";
    return output->bits.not_written == output->bits.elements ? "not written"
                                                             : "equal where written";
}

/* --- indices --- */

static void find_index(const gbx_tensor *tensor, uint64_t number, int64_t index[GBX_MAX_DIMS]) {
    for (uint32_t d = tensor->ndims; d-- > 0;) {
        uint64_t size = (uint64_t)tensor->shape[d];
        index[d] = size > 0 ? (int64_t)(number % size) : 0;
        number = size > 0 ? number / size : 0;
    }
}

static const char *put_numbers(const int64_t *numbers, uint32_t count, char *out_text) {
    char *at = out_text;
    *at++ = '[';
    for (uint32_t d = 0; d < count; ++d)
        at += sprintf(at, "%s%" PRId64, d ? ", " : "", numbers[d]);
    *at++ = ']';
    *at = '\0';
    return out_text;
}

const char *gbx_text_index(const gbx_tensor *tensor, uint64_t number,
                           char out_text[GBX_INDEX_TEXT_BYTES]) {
    int64_t index[GBX_MAX_DIMS];
    find_index(tensor, number, index);
    return put_numbers(index, tensor->ndims, out_text);
}

const char *gbx_text_shape(const gbx_tensor *tensor, char out_text[GBX_INDEX_TEXT_BYTES]) {
    return put_numbers(tensor->shape, tensor->ndims, out_text);
}

void gbx_json_index(gbx_json_writer *json, const gbx_tensor *tensor, uint64_t number) {
    int64_t index[GBX_MAX_DIMS];
    find_index(tensor, number, index);
    gbx_json_begin_array_inline(json);
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        gbx_json_i64(json, index[d]);
    gbx_json_end_array(json);
}

/* --- values --- */

const char *gbx_text_value(uint32_t dtype, uint64_t bits, char out_text[GBX_VALUE_TEXT_BYTES]) {
    char value[GBX_ELEMENT_TEXT_BYTES];
    gbx_element_format(dtype, bits, value);
    int digits = (int)(gbx_dtype_bits(dtype) + 3) / 4;
    bool has_twins = gbx_dtype_is_float(dtype) && isnan(gbx_dtype_to_f64(dtype, bits));
    has_twins = has_twins || (dtype == GBX_BOOL && bits > 1);
    if (has_twins)
        snprintf(out_text, GBX_VALUE_TEXT_BYTES, "%s (0x%0*" PRIx64 ")", value, digits, bits);
    else
        snprintf(out_text, GBX_VALUE_TEXT_BYTES, "%s", value);
    return out_text;
}
