/* What a clue is about: task, argument, element, bytes. */
#include <string.h>

#include "diagnose/internal.h"

const gbx_replay_result *gbx_clue_result(const gbx_diagnosis *d, const gbx_clue *clue) {
    switch (clue->source) {
    case GBX_CLUE_REPLAY:
    case GBX_CLUE_FAULT:
        return &d->check.results[clue->index];
    case GBX_CLUE_UNENDED:
    case GBX_CLUE_UNENDED_OF:
        return &d->unended[clue->index];
    default:
        return NULL;
    }
}

static void set_argument(gbx_diagnosis_finding *to, uint32_t slot, const char *name,
                         const gbx_tensor *tensor, uint64_t element) {
    to->slot = slot;
    to->name = slot == GBX_NO_ARGUMENT ? NULL : name;
    if (tensor)
        to->tensor = *tensor;
    to->element = tensor ? element : GBX_NO_ELEMENT;
}

static gbx_status set_entry(const gbx_inquiry *q, gbx_diagnosis_finding *to, uint64_t entry,
                            bool has_element, uint64_t element) {
    gbx_entry found;
    gbx_tensor tensor = {0};
    GBX_TRY(gbx_entries_at(q->request->entries, entry, &found));
    if (found.tensor)
        gbx_record_view(found.tensor, &tensor);
    set_argument(to, found.head->arg_index, found.arg_name, found.tensor ? &tensor : NULL,
                 has_element ? element : GBX_NO_ELEMENT);
    return NULL;
}

static void set_replay(const gbx_replay_finding *from, gbx_diagnosis_finding *to) {
    set_argument(to, from->slot, from->name, &from->tensor, from->is.element);
    to->bytes = from->is.bytes;
    for (int i = 0; i < 2; ++i)
        if (from->is.parties[i] != GBX_NO_PARTY)
            to->blocks[to->block_count++] = from->parties[i];
}

static void set_guard(const gbx_inquiry *q, const gbx_run_finding *from,
                      gbx_diagnosis_finding *to) {
    const gbx_run_finding_task *doer = &from->candidates[0];
    to->bytes = from->changed;
    if (to->task == GBX_DIAGNOSIS_NOBODY || from->candidate_count == 0 ||
        doer->arg_index == GBX_FINDING_NO_ARGUMENT)
        return;
    to->slot = doer->arg_index;
    to->name = gbx_run_info_slot_name(gbx_reader_run(q->reader), to->func_ids, doer->arg_index);
}

static void set_line(const gbx_diagnosis_line *line, uint32_t item, gbx_diagnosis_finding *to) {
    const gbx_sanitize_finding *from = &line->report.findings[item];
    to->bytes = from->bytes;
    if (from->argument >= line->task.argument_count)
        return;
    const gbx_replay_argument *argument = &line->task.arguments[from->argument];
    set_argument(to, argument->slot, argument->name, &argument->tensor, from->element);
    for (int i = 0; i < 2; ++i)
        if (from->parties[i] < line->task.dispatch_count && line->task.dispatch_count > 1)
            to->blocks[to->block_count++] = line->task.dispatches[from->parties[i]];
}

static gbx_status set_audit(const gbx_inquiry *q, const gbx_audit_finding *from,
                            gbx_diagnosis_finding *to) {
    to->bytes = from->bytes;
    const gbx_audit_side *side = from->is_result ? &from->first : &from->second;
    return set_entry(q, to, side->entry, from->has_element && !from->is_result, from->element);
}

static gbx_status describe(const gbx_inquiry *q, const gbx_clue *clue,
                           gbx_diagnosis_finding *finding) {
    const gbx_diagnosis *d = q->d;
    const gbx_replay_result *result = gbx_clue_result(d, clue);
    switch (clue->source) {
    case GBX_CLUE_REPLAY:
    case GBX_CLUE_UNENDED_OF:
        set_replay(&result->findings[clue->item], finding);
        return NULL;
    case GBX_CLUE_GUARD:
        set_guard(q, &d->guards[clue->index], finding);
        return NULL;
    case GBX_CLUE_AUDIT:
        return set_audit(q, &d->audit.findings[clue->index], finding);
    case GBX_CLUE_REFERENCE: {
        const gbx_check_line *line = &d->check.lines[clue->index];
        if (line->output_count == 0)
            return NULL;
        const gbx_check_output *output = &line->outputs[line->worst_output];
        set_argument(finding, output->slot, output->name, &output->tensor,
                     output->comparison.worst.index);
        return NULL;
    }
    case GBX_CLUE_SANITIZER:
        set_line(&d->lines[clue->index], clue->item, finding);
        return NULL;
    case GBX_CLUE_NAN:
        return set_entry(q, finding, d->nan.nan.entry, d->nan.nan.has_element, d->nan.nan.element);
    case GBX_CLUE_ODD: {
        const gbx_odd_argument *odd = &d->odd.items[clue->index];
        return set_entry(q, finding, odd->entry, odd->kind == GBX_ODD_UNWRITTEN, odd->element);
    }
    case GBX_CLUE_GOLDEN:
        if (finding->task == GBX_DIAGNOSIS_NOBODY)
            return NULL;
        return finding->task == d->unchecked.task && finding->other != GBX_DIAGNOSIS_NOBODY
                   ? set_entry(q, finding, d->unchecked.entry, false, 0)
                   : set_entry(q, finding, d->blame.writers[0].entry, true,
                               d->blame.writers[0].element);
    default:
        return NULL;
    }
}

static gbx_status set_task(const gbx_inquiry *q, gbx_diagnosis_finding *finding) {
    gbx_record_task record;
    bool is_found;
    if (finding->task == GBX_DIAGNOSIS_NOBODY)
        return NULL;
    GBX_TRY(gbx_reader_find_task(q->reader, finding->task, &record, &is_found));
    if (is_found) {
        finding->task_id = record.task_id;
        memcpy(finding->func_ids, record.func_ids, sizeof finding->func_ids);
    }
    return NULL;
}

gbx_status gbx_clue_describe(const gbx_inquiry *q, const gbx_clue *clue,
                             gbx_diagnosis_finding *out_finding) {
    *out_finding = (gbx_diagnosis_finding){.kind = clue->kind,
                                           .task = clue->task,
                                           .other = clue->other,
                                           .place = clue->place,
                                           .slot = GBX_NO_ARGUMENT,
                                           .element = GBX_NO_ELEMENT,
                                           .func_ids = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
                                           .follows = -1};
    GBX_TRY(set_task(q, out_finding));
    return describe(q, clue, out_finding);
}
