#include "text/finding_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

enum { ZONE_BYTES = 512 };

/* A text under construction; what does not fit is left out. */
typedef struct text {
    char *bytes;
    size_t used;
    size_t left;
    const gbx_finding_names *names;
} text;

static void add(text *t, const char *format, ...) GBX_PRINTF(2, 3);

static void add(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(t->bytes + t->used, t->left, format, arguments);
    va_end(arguments);
    size_t added = length < 0 ? 0 : (size_t)length < t->left ? (size_t)length : t->left - 1;
    t->used += added;
    t->left -= added;
}

static const char *kernel_name(const text *t, uint32_t func_id) {
    return func_id == GBX_FINDING_NO_KERNEL ? NULL : t->names->kernel(t->names->context, func_id);
}

/* "task 12, kernel gelu" */
static void add_task(text *t, uint64_t task, uint32_t func_id) {
    const char *name = kernel_name(t, func_id);
    add(t, "task %" PRIu64, task);
    if (name)
        add(t, ", kernel %s", name);
    else if (func_id != GBX_FINDING_NO_KERNEL)
        add(t, ", kernel %" PRIu32, func_id);
}

const char *gbx_name_in_list(const char *list, uint32_t index, size_t *out_size) {
    for (uint32_t i = 0; list && i < index; ++i) {
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    *out_size = list ? strcspn(list, ",") : 0;
    return *out_size ? list : NULL;
}

/* "argument 1 (out)" */
static void add_argument(text *t, uint32_t func_id, uint32_t index) {
    size_t size = 0;
    const char *name = t->names->argument(t->names->context, func_id, index, &size);
    add(t, "argument %" PRIu32, index);
    if (name)
        add(t, " (%.*s)", (int)size, name);
}

static const char *bytes_word(uint64_t count) {
    return count == 1 ? "byte" : "bytes";
}

static void add_victim(text *t, const gbx_run_finding *f) {
    const char *name;
    switch (f->place) {
    case GBX_PLACE_RUN_ARGUMENT:
        name = t->names->run_argument(t->names->context, f->index);
        if (name)
            add(t, "the run's tensor %s", name);
        else
            add(t, "the run's tensor %" PRIu32, f->index);
        break;
    case GBX_PLACE_ALLOCATION:
        add(t, "allocation %" PRIu32 " of the host", f->index);
        break;
    case GBX_PLACE_DEVICE_MALLOC:
        add(t, "allocation %" PRIu32 " of the orchestration", f->index);
        break;
    case GBX_PLACE_OUTPUT:
        add_argument(t, f->owner_func, f->index);
        add(t, " of ");
        add_task(t, f->owner_task, f->owner_func);
        break;
    case GBX_PLACE_ARGUMENTS:
        add(t, "the arguments of ");
        add_task(t, f->owner_task, f->owner_func);
        break;
    default:
        add(t, "memory of glassbox itself");
    }
}

/* What zones see of a write that passes over a whole one, which has 512 bytes or more and ends at a
 * multiple of that, is only a part of it. */
static bool is_part(const gbx_run_finding *f) {
    uint64_t end = f->address + (uint64_t)f->first + f->span;
    return (f->kind == GBX_RUN_FINDING_OVERRUN && end % ZONE_BYTES == 0) ||
           (f->kind == GBX_RUN_FINDING_UNDERRUN && f->span >= ZONE_BYTES);
}

/* "64 bytes", or "62 of 64 bytes" where some were equal before, or are not in a zone. */
static void add_amount(text *t, const gbx_run_finding *f) {
    if (is_part(f))
        add(t, "at least ");
    if (f->changed != f->span)
        add(t, "%" PRIu64 " of ", f->changed);
    add(t, "%" PRIu64 " %s", f->span, bytes_word(f->span));
}

/* Where the bytes lie, beside the buffer. */
static void add_range(text *t, const gbx_run_finding *f) {
    int64_t last = f->first + (int64_t)f->span - 1;
    if (f->span == 1)
        add(t, ": byte %" PRId64, f->first);
    else
        add(t, ": bytes %" PRId64 " to %" PRId64, f->first, last);
    add(t, " of a buffer of %" PRIu64 " %s", f->bytes, bytes_word(f->bytes));
}

static void add_place(text *t, const gbx_run_finding *f) {
    static const char *const where[] = {[GBX_RUN_FINDING_OVERRUN] = "past the end of",
                                        [GBX_RUN_FINDING_UNDERRUN] = "before the start of"};
    uint64_t behind = (uint64_t)f->first - f->bytes;
    const gbx_run_finding_task *doer = &f->candidates[0];
    bool is_own_argument = f->certainty != GBX_CERTAINTY_OPEN && f->candidate_count > 0 &&
                           doer->arg_index != GBX_FINDING_NO_ARGUMENT;
    if (f->kind == GBX_RUN_FINDING_STRAY) {
        if (f->first >= 0)
            add(t, " %" PRIu64 " %s behind ", behind, bytes_word(behind));
        else
            add(t, " near the start of ");
    } else {
        add(t, " %s ", where[f->kind]);
    }
    if (is_own_argument) {
        add(t, "its ");
        add_argument(t, doer->func_id, doer->arg_index);
        if (f->place == GBX_PLACE_OUTPUT && f->owner_task == doer->task)
            return;
        add(t, ", ");
    }
    add_victim(t, f);
}

/* "3 (kernel add), 4 (kernel mul) and 7 more", from candidate `first` on. */
static void add_candidates(text *t, const gbx_run_finding *f, uint32_t first) {
    uint64_t more = f->candidate_total - f->candidate_count;
    for (uint32_t i = first; i < f->candidate_count; ++i) {
        const char *name = kernel_name(t, f->candidates[i].func_id);
        bool is_last = i + 1 == f->candidate_count && !more;
        add(t, "%s%" PRIu64, i == first ? "" : is_last ? " and " : ", ", f->candidates[i].task);
        if (name)
            add(t, " (kernel %s)", name);
    }
    if (more)
        add(t, "%s%" PRIu64 " more", f->candidate_count > first ? " and " : "", more);
}

static void add_doer(text *t, const gbx_run_finding *f) {
    if (f->candidate_count == 0) {
        add(t, "an unknown task");
    } else if (f->certainty == GBX_CERTAINTY_OPEN && f->candidate_total > 1) {
        add(t, "one of tasks ");
        add_candidates(t, f, 0);
    } else {
        add_task(t, f->candidates[0].task, f->candidates[0].func_id);
        add(t, "%s", f->certainty == GBX_CERTAINTY_LIKELY ? ", probably" : ",");
    }
}

/* Who else ran. */
static void add_others(text *t, const gbx_run_finding *f) {
    uint64_t others = f->candidate_total - 1;
    if (f->certainty == GBX_CERTAINTY_OPEN && f->candidate_total > 1) {
        add(t, " (these ran since the bytes were last right)");
    } else if (f->certainty == GBX_CERTAINTY_LIKELY && f->candidate_total > 1) {
        add(t, " (%s ", others == 1 ? "task" : "tasks");
        add_candidates(t, f, 1);
        add(t, " also ran, but %s no argument there)", others == 1 ? "has" : "have");
    }
}

void gbx_finding_text(const gbx_run_finding *f, const gbx_finding_names *names,
                      char out_text[GBX_FINDING_TEXT_BYTES]) {
    text t = {.bytes = out_text, .left = GBX_FINDING_TEXT_BYTES, .names = names};
    out_text[0] = '\0';
    add_doer(&t, f);
    if (f->kind == GBX_RUN_FINDING_ARGUMENTS) {
        add(&t, " overwrote ");
        add_victim(&t, f);
        add(&t, ": ");
        add_amount(&t, f);
        return;
    }
    add(&t, " wrote ");
    add_amount(&t, f);
    add_place(&t, f);
    add_range(&t, f);
    add_others(&t, f);
}
