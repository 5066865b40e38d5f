#include "replay/swap/swap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "replay/check/check.h"
#include "text/plain_text.h"

typedef struct judging {
    const gbx_replay_job *job;
    gbx_replay_payloads *payloads;                      /* `replay` is of the new kernel */
    unsigned char *expected[GBX_REPLAY_MAX_ARGUMENTS];  /* results of the references, or NULL */
    unsigned char *unwritten[GBX_REPLAY_MAX_ARGUMENTS]; /* what they hold where references do not
                                                           write; NULL: they write all of it */
} judging;

/* --- elements to show --- */

static void add_element(gbx_replay_swap *swap, const gbx_swap_element *element) {
    size_t place = swap->element_count;
    while (place > 0 && swap->elements[place - 1].distance < element->distance)
        --place;
    if (place == GBX_SWAP_ELEMENTS)
        return;
    size_t last =
        swap->element_count < GBX_SWAP_ELEMENTS ? swap->element_count : GBX_SWAP_ELEMENTS - 1;
    memmove(&swap->elements[place + 1], &swap->elements[place],
            (last - place) * sizeof *swap->elements);
    swap->elements[place] = *element;
    swap->element_count = last + 1;
}

static gbx_swap_element element_at(const judging *j, const gbx_replay_result *result, size_t output,
                                   uint64_t number) {
    const gbx_replay_compared *compared = &result->outputs[output];
    uint32_t a = compared->argument;
    const gbx_tensor *tensor = &compared->tensor;
    gbx_swap_element element = {.output = output, .number = number};
    element.new_bits = gbx_bits_element(tensor, j->payloads->kept[GBX_KEPT_FIRST][a], number);
    const gbx_bits_payloads bits = {.replay = j->payloads->kept[GBX_KEPT_FIRST][a],
                                    .other = j->payloads->kept[GBX_KEPT_OTHER][a],
                                    .start = j->payloads->kept[GBX_KEPT_START][a],
                                    .other_start = j->payloads->kept[GBX_KEPT_OTHER_START][a]};
    element.has_new = gbx_bits_is_written(tensor, &bits, number);
    element.has_old = j->payloads->dump[a] != NULL;
    if (element.has_old)
        element.old_bits = gbx_bits_element(tensor, j->payloads->dump[a], number);
    if (j->expected[a]) {
        element.expected_bits = gbx_bits_element(tensor, j->expected[a], number);
        element.has_expected =
            !j->unwritten[a] ||
            gbx_bits_element(tensor, j->unwritten[a], number) != element.expected_bits;
    }
    return element;
}

/* Elements that changed or, if !is_changed, those furthest from the expected ones. */
static void choose_elements(const judging *j, gbx_replay_swap *swap, bool is_changed) {
    for (size_t i = 0; i < swap->result.output_count; ++i) {
        const gbx_replay_compared *output = &swap->result.outputs[i];
        uint64_t count = (uint64_t)gbx_tensor_numel(&output->tensor);
        for (uint64_t n = 0; n < count; ++n) {
            gbx_swap_element element = element_at(j, &swap->result, i, n);
            bool is_there = is_changed ? element.has_old : element.has_expected;
            uint64_t other = is_changed ? element.old_bits : element.expected_bits;
            bool is_of_others = !element.has_new && swap->result.dispatch >= 0;
            if (!is_there || is_of_others || (element.has_new && other == element.new_bits))
                continue;
            element.distance =
                element.has_new ? gbx_bits_distance(output->tensor.dtype, element.new_bits, other)
                                : INFINITY;
            add_element(swap, &element);
        }
    }
}

/* --- the judgement --- */

static void not_judged(gbx_replay_swap *swap, const char *reason) {
    swap->judgement = GBX_SWAP_NOT_JUDGED;
    snprintf(swap->reason, sizeof swap->reason, "%s", reason);
    gbx_text_make_plain(swap->reason);
}

static gbx_swap_judgement judgement_of(bool is_right, bool was_right, bool was_wrong) {
    if (is_right)
        return was_wrong ? GBX_SWAP_FIXED : GBX_SWAP_RIGHT;
    if (was_wrong)
        return GBX_SWAP_STILL_WRONG;
    return was_right ? GBX_SWAP_BROKEN : GBX_SWAP_WRONG;
}

/* What references left, or found, in an argument. */
static gbx_status read_kept(const judging *j, uint32_t argument, const gbx_tensor *tensor,
                            gbx_replay_kept which, unsigned char **out_payload) {
    *out_payload = malloc(gbx_tensor_payload_bytes(tensor) + 1);
    if (!*out_payload)
        return gbx_fail_memory("judging a kernel");
    return gbx_replay_output(j->job->engine, argument, which, *out_payload);
}

/* Checks the old kernel first: the results of the references then stay for the new one. */
static gbx_status judge(judging *j, const gbx_references *references, gbx_replay_swap *swap) {
    const gbx_replay_job *job = j->job;
    gbx_entries *entries = job->entries;
    const gbx_replay_task *task = job->request.task;
    const void *got[GBX_REPLAY_MAX_ARGUMENTS];
    gbx_check_result checked;
    for (size_t i = 0; i < GBX_REPLAY_MAX_ARGUMENTS; ++i)
        got[i] = j->payloads->kept[GBX_KEPT_FIRST][i];
    GBX_TRY(gbx_check_task(job->engine, entries, task->task, references->items, references->count,
                           &checked));
    bool was_right = checked.verdict == GBX_CHECK_RIGHT;
    bool was_wrong = checked.verdict == GBX_CHECK_INTRODUCED || swap->result.is_end_of_run;
    GBX_TRY(gbx_check_payloads(job->engine, entries, task, got, references->items,
                               references->count, &checked));
    if (checked.verdict == GBX_CHECK_NOT_CHECKED) {
        not_judged(swap, checked.reason);
        return NULL;
    }
    swap->judgement = judgement_of(checked.verdict == GBX_CHECK_RIGHT, was_right, was_wrong);
    swap->wrong = 0;
    for (uint32_t i = 0; i < checked.output_count; ++i) {
        const gbx_comparison *comparison = &checked.outputs[i].comparison;
        swap->wrong += comparison->mismatches;
        swap->rtol = comparison->tolerance.rtol;
        swap->atol = comparison->tolerance.atol;
        uint32_t a = checked.outputs[i].argument;
        const gbx_tensor *tensor = &j->job->request.task->arguments[a].tensor;
        GBX_TRY(read_kept(j, a, tensor, GBX_KEPT_FIRST, &j->expected[a]));
        if (checked.outputs[i].not_written > 0)
            GBX_TRY(read_kept(j, a, tensor, GBX_KEPT_START, &j->unwritten[a]));
    }
    return NULL;
}

static gbx_status judge_by_scene(judging *j, const gbx_swap_scene *scene, gbx_replay_swap *swap) {
    gbx_references *references;
    gbx_scene_trouble trouble;
    const gbx_reader *reader = gbx_entries_reader(j->job->entries);
    const char *named = scene->is_trusted && scene->kept ? scene->kept->scene_path : NULL;
    gbx_status status = gbx_references_open(named, scene->dump_directory, scene->kept,
                                            gbx_reader_run(reader), &references, &trouble);
    if (status) {
        not_judged(swap, trouble == GBX_SCENE_FOREIGN
                             ? "the references of the dump's scene are code, and the scene belongs "
                               "to another user, is writable by everyone or lies inside the dump; "
                               "if you trust it, give --trust"
                             : gbx_status_message(status));
        gbx_status_free(status);
        return NULL;
    }
    status = judge(j, references, swap);
    gbx_references_close(references);
    return status;
}

/* --- running --- */

gbx_status gbx_replay_swap_run(const gbx_replay_job *job, const gbx_swap_scene *scene,
                               gbx_replay_swap *out_swap) {
    gbx_replay_payloads payloads;
    judging j = {.job = job, .payloads = &payloads};
    *out_swap = (gbx_replay_swap){.judgement = GBX_SWAP_NOT_JUDGED};
    gbx_status status = gbx_replay_execute(job, &payloads, &out_swap->result);
    bool has_outputs = !status && !out_swap->result.fault;
    if (has_outputs && job->request.dispatch >= 0)
        not_judged(out_swap, "a single dispatch cannot be judged; omit --dispatch");
    else if (has_outputs)
        status = judge_by_scene(&j, scene, out_swap);
    if (has_outputs && !status) {
        choose_elements(&j, out_swap, true);
        if (out_swap->element_count == 0)
            choose_elements(&j, out_swap, false);
    }
    for (size_t i = 0; i < GBX_REPLAY_MAX_ARGUMENTS; ++i) {
        free(j.expected[i]);
        free(j.unwritten[i]);
    }
    gbx_replay_payloads_free(&payloads);
    return status;
}

void gbx_replay_swap_free(gbx_replay_swap *swap) {
    gbx_replay_result_free(&swap->result);
}
