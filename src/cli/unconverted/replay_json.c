#include "cli/internal.h"

/* --- outputs --- */

static void put_value(gbx_json_writer *json, const char *key, bool is_there, uint32_t dtype,
                      uint64_t bits) {
    if (is_there)
        gbx_json_put_value(json, key, dtype, bits);
    else
        gbx_json_put_null(json, key);
}

static void put_bool(gbx_json_writer *json, const char *key, bool is_there, bool value) {
    if (is_there)
        gbx_json_put_bool(json, key, value);
    else
        gbx_json_put_null(json, key);
}

static void put_bits(gbx_json_writer *json, const char *key, bool is_there, uint64_t bits) {
    if (is_there)
        gbx_json_put_hex_text(json, key, bits);
    else
        gbx_json_put_null(json, key);
}

static void put_real(gbx_json_writer *json, const char *key, bool is_there, double value) {
    if (is_there)
        gbx_json_put_f64(json, key, value);
    else
        gbx_json_put_null(json, key);
}

/* The first element that differs: its index, and what it is in both. */
static void put_first_bad(gbx_json_writer *json, const gbx_replay_compared *output) {
    const gbx_bits_comparison *bits = &output->bits;
    bool is_bad = output->is_compared && bits->mismatches > 0;
    uint32_t dtype = output->tensor.dtype;
    if (is_bad)
        gbx_json_put_index(json, "first_bad", &output->tensor, bits->first_bad);
    else
        gbx_json_put_null(json, "first_bad");
    put_value(json, "dump", is_bad, dtype, bits->dump_bits);
    put_value(json, "replay", is_bad, dtype, bits->replay_bits);
    put_bits(json, "dump_bits", is_bad, bits->dump_bits);
    put_bits(json, "replay_bits", is_bad, bits->replay_bits);
}

static void put_output(gbx_json_writer *json, const gbx_replay_compared *output) {
    gbx_json_begin_object(json);
    gbx_json_put_u64(json, "arg_index", output->slot);
    gbx_json_put_string(json, "name", output->name);
    gbx_json_put_string(json, "dtype", gbx_dtype_name(output->tensor.dtype));
    gbx_json_put_numbers(json, "shape", output->tensor.shape, output->tensor.ndims);
    gbx_json_put_bool(json, "is_compared", output->is_compared);
    gbx_json_put_bool(json, "bit_exact", output->is_exact);
    gbx_json_put_bool(json, "is_unchanged", output->is_unchanged);
    gbx_json_put_u64(json, "elements", output->bits.elements);
    /* What was not compared is null, not equal. */
    gbx_json_put_known(json, "mismatches", output->is_compared, output->bits.mismatches);
    gbx_json_put_u64(json, "not_written", output->bits.not_written);
    gbx_json_put_u64(json, "unstable", output->bits.unstable);
    put_real(json, "max_abs", output->is_compared, output->bits.max_abs);
    put_first_bad(json, output);
    gbx_json_end_object(json);
}

/* --- faults, times --- */

static void put_fault(gbx_json_writer *json, const gbx_replay_result *result) {
    const gbx_replay_fault *fault = &result->outcome.fault;
    gbx_json_key(json, "fault");
    if (!fault->is_there) {
        gbx_json_null(json);
        return;
    }
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "text", fault->text);
    gbx_json_put_bool(json, "is_hang", fault->is_hang);
    gbx_json_put_u64(json, "signal", (uint64_t)fault->signal);
    put_bits(json, "address", fault->has_address, fault->address);
    gbx_json_put_u64(json, "dispatch", fault->dispatch);
    gbx_json_put_known(json, "run", result->fault_run > 0, result->fault_run);
    put_bool(json, "as_in_the_run", !result->is_end_unknown, result->is_end_of_run);
    gbx_json_put_bool(json, "with_other_poison_only", result->is_other_poison);
    gbx_json_end_object(json);
}

static void put_times(gbx_json_writer *json, const gbx_replay_result *result) {
    const gbx_replay_times *times = &result->times;
    gbx_json_put_known(json, "ns_per_call", times->runs > 0, times->median_ns);
    gbx_json_key(json, "repeat");
    if (times->runs < 2) {
        gbx_json_null(json);
        return;
    }
    gbx_json_begin_object_inline(json);
    gbx_json_put_u64(json, "runs", times->runs);
    gbx_json_put_u64(json, "min_ns", times->min_ns);
    gbx_json_put_u64(json, "median_ns", times->median_ns);
    gbx_json_put_u64(json, "max_ns", times->max_ns);
    gbx_json_put_u64(json, "different", times->different);
    gbx_json_end_object(json);
}

static void put_members(gbx_json_writer *json, const gbx_replay_result *result) {
    const gbx_replay_outcome *outcome = &result->outcome;
    bool has_run = result->verdict != GBX_REPLAY_REFUSED;
    gbx_json_put_u64(json, "task_seq", result->task);
    gbx_json_put_hex_text(json, "task_id", result->task_id);
    gbx_json_put_string(json, "kernel", result->kernel);
    gbx_json_put_known(json, "dispatch", result->dispatch >= 0, (uint64_t)result->dispatch);
    gbx_json_put_known(json, "dispatches", has_run, result->dispatch_count);
    gbx_json_put_string(json, "verdict", gbx_replay_verdict_word(result->verdict));
    gbx_json_put_string(json, "reason", result->refusal.sentence);
    gbx_json_key(json, "outputs");
    gbx_json_begin_array(json);
    for (size_t i = 0; has_run && !outcome->fault.is_there && i < result->output_count; ++i)
        put_output(json, &result->outputs[i]);
    gbx_json_end_array(json);
    put_fault(json, result);
    put_times(json, result);
    gbx_json_put_known(json, "stray_bytes", !outcome->stray_is_unknown && has_run,
                       outcome->stray_bytes);
    put_bits(json, "stray_address", outcome->stray_bytes > 0, outcome->stray_address);
    gbx_json_put_known(json, "stray_argument",
                       outcome->stray_bytes > 0 && result->stray_argument >= 0,
                       (uint64_t)result->stray_argument);
    put_bool(json, "did_complete", has_run, result->did_complete);
    put_bool(json, "is_relocated", has_run, result->outcome.is_relocated);
    put_bool(json, "has_core_ids", has_run, result->has_core_ids);
}

/* --- the document --- */

gbx_status gbx_replay_json_print(const gbx_replay_result *results, size_t count, bool is_list) {
    static gbx_json_writer json; /* too large for a stack */
    uint64_t counts[GBX_REPLAY_VERDICT_COUNT] = {0};
    gbx_json_start_stdout(&json);
    if (is_list) {
        for (size_t i = 0; i < count; ++i)
            counts[results[i].verdict]++;
        gbx_json_key(&json, "verdicts");
        gbx_json_begin_object_inline(&json);
        for (gbx_replay_verdict verdict = 0; verdict < GBX_REPLAY_VERDICT_COUNT; ++verdict)
            gbx_json_put_u64(&json, gbx_replay_verdict_word(verdict), counts[verdict]);
        gbx_json_end_object(&json);
        gbx_json_key(&json, "tasks");
        gbx_json_begin_array(&json);
    }
    for (size_t i = 0; i < count; ++i) {
        if (is_list)
            gbx_json_begin_object(&json);
        put_members(&json, &results[i]);
        if (is_list)
            gbx_json_end_object(&json);
    }
    if (is_list)
        gbx_json_end_array(&json);
    return gbx_json_finish_stdout(&json, NULL);
}

/* --- of another kernel --- */

gbx_status gbx_replay_swap_print_json(const gbx_replay_swap *swap) {
    static const char *const words[GBX_SWAP_JUDGEMENT_COUNT] = {
        [GBX_SWAP_FIXED] = "fixed",
        [GBX_SWAP_RIGHT] = "right",
        [GBX_SWAP_STILL_WRONG] = "still_wrong",
        [GBX_SWAP_BROKEN] = "broken",
        [GBX_SWAP_WRONG] = "wrong",
        [GBX_SWAP_NOT_JUDGED] = "not_judged"};
    static gbx_json_writer json; /* too large for a stack */
    bool is_judged = swap->judgement != GBX_SWAP_NOT_JUDGED;
    gbx_json_start_stdout(&json);
    put_members(&json, &swap->result);
    gbx_json_put_string(&json, "judgement", words[swap->judgement]);
    gbx_json_put_string(&json, "judgement_reason", is_judged ? NULL : swap->reason);
    gbx_json_put_known(&json, "wrong", is_judged, swap->wrong);
    put_real(&json, "rtol", is_judged, swap->rtol);
    put_real(&json, "atol", is_judged, swap->atol);
    gbx_json_key(&json, "elements");
    gbx_json_begin_array(&json);
    for (size_t i = 0; i < swap->element_count; ++i) {
        const gbx_swap_element *element = &swap->elements[i];
        const gbx_replay_compared *output = &swap->result.outputs[element->output];
        uint32_t dtype = output->tensor.dtype;
        gbx_json_begin_object_inline(&json);
        gbx_json_put_u64(&json, "arg_index", output->slot);
        gbx_json_put_index(&json, "index", &output->tensor, element->number);
        put_value(&json, "old", element->has_old, dtype, element->old_bits);
        put_value(&json, "new", element->has_new, dtype, element->new_bits);
        put_value(&json, "expected", element->has_expected, dtype, element->expected_bits);
        gbx_json_end_object(&json);
    }
    gbx_json_end_array(&json);
    return gbx_json_finish_stdout(&json, NULL);
}
