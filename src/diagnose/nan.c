/* The first NaN that a task made. New memory holds NaN: what nobody wrote is not one of them. */
#include <inttypes.h>
#include <math.h>

#include "analysis/new_memory.h"
#include "diagnose/internal.h"

/* --- NaNs of new memory --- */

static bool is_new(uint32_t dtype, uint64_t bits) {
    unsigned char bytes[sizeof bits];
    size_t width = gbx_dtype_bits(dtype) / 8;
    bool is_it = width > 0;
    memcpy(bytes, &bits, sizeof bits); /* this machine has the low bytes first, as dumps do */
    for (size_t at = 0; at < width && is_it; ++at)
        is_it = gbx_is_new_memory(bytes, width, at, width == 1 ? 1 : 0);
    return is_it;
}

/* Where the dump lacks values, only results that are wrong make a NaN worth a finding. */
static gbx_status doubt(gbx_inquiry *q, bool *out_are) {
    *out_are = !q->d->golden;
    if (q->d->golden)
        return NULL;
    return gbx_inquiry_lack(q, GBX_ASKED_NAN,
                            "the dump has NaNs without their bits, which may be those of new "
                            "memory");
}

/* Whether every NaN of an output is what new memory holds. */
static gbx_status are_all_new(gbx_inquiry *q, const gbx_entry *entry, bool *out_are) {
    enum { ELEMENTS = 512 };
    gbx_entry_values values;
    uint64_t bits[ELEMENTS];
    if (!gbx_entry_has_values(entry))
        return doubt(q, out_are);
    GBX_TRY(gbx_entry_values_open(entry, q->reader, &values));
    *out_are = true;
    for (uint64_t at = 0; at < values.elements.stored && *out_are; at += ELEMENTS) {
        uint64_t rest = values.elements.stored - at;
        size_t count = rest < ELEMENTS ? (size_t)rest : ELEMENTS;
        GBX_TRY(gbx_elements_read(&values.elements, at, count, bits));
        for (size_t i = 0; i < count && *out_are; ++i)
            *out_are =
                !isnan(gbx_dtype_to_f64(entry->dtype, bits[i])) || is_new(entry->dtype, bits[i]);
    }
    return *out_are && values.elements.stored < values.elements.count ? doubt(q, out_are) : NULL;
}

/* Whether all NaNs of an output are in elements that its task does not write. */
static bool are_in_gap(const gbx_replay_result *result, uint32_t slot, const gbx_nan_output *nan) {
    for (uint32_t i = 0; i < result->finding_count; ++i) {
        const gbx_replay_finding *f = &result->findings[i];
        bool is_gap = f->is.kind == GBX_UNWRITTEN || f->is.kind == GBX_UNWRITTEN_READ;
        if (is_gap && f->slot == slot && nan->has_element && f->is.element <= nan->element &&
            nan->element <= f->is.last && nan->nan_count <= f->is.elements)
            return true;
    }
    return false;
}

/* A task that was called again is known to write what it is not said to leave; of others only the
 * values can tell. */
static gbx_status are_unwritten(void *context, const gbx_nan_output *nan, bool *out_are) {
    gbx_inquiry *q = context;
    const gbx_check_line *line = gbx_inquiry_find_line(q, nan->task);
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(q->request->entries, nan->entry, &entry));
    if (!line || !line->kernels.is_called || line->kernels.verdict == GBX_REPLAY_FAULT)
        return are_all_new(q, &entry, out_are);
    *out_are = line->kernels.result >= 0 &&
               are_in_gap(&q->d->check.results[line->kernels.result], entry.head->arg_index, nan);
    return NULL;
}

/* --- the question --- */

gbx_status gbx_inquiry_ask_nan(gbx_inquiry *q) {
    const gbx_first_nan_request request = {.passes_over = are_unwritten, .context = q};
    gbx_diagnosis *d = q->d;
    gbx_diagnosis_asked *asked = &d->asked[GBX_ASKED_NAN];
    asked->tasks = d->with_values;
    asked->not_asked = d->tasks - d->with_values;
    /* A task that is right may leave a NaN: its reference leaves it, too. */
    if (d->check.verdicts[GBX_CHECK_RIGHT] < d->tasks)
        GBX_TRY(gbx_first_nan_find(q->request->entries, q->graph, &request, &d->nan));
    if (asked->not_asked > 0)
        return gbx_inquiry_lack(q, GBX_ASKED_NAN, "the dump lacks the values of their outputs");
    if (d->nan.unknown > 0)
        return gbx_inquiry_lack(q, GBX_ASKED_NAN, "the dump lacks the values of %" PRIu64 " %s",
                                d->nan.unknown, d->nan.unknown == 1 ? "output" : "outputs");
    return NULL;
}
