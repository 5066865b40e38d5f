/* What is odd about the arguments of a graph, one sentence each. */
#include <inttypes.h>
#include <string.h>

#include "report/party.h"
#include "report/reports.h"

typedef struct saying {
    const gbx_reporting *r;
    gbx_texts *t;
} saying;

/* The scalar of the run with these bits, and another name than an argument's; NULL for none. */
static gbx_status find_run_scalar(const saying *s, const char *name, uint64_t bits,
                                  const char **out_name) {
    gbx_reader *reader = s->r->dump->reader;
    const gbx_run_info *run = gbx_reader_run(reader);
    *out_name = NULL;
    for (uint64_t i = 0; i < gbx_reader_list_count(reader, GBX_LIST_RUN_ARGS) && !*out_name; ++i) {
        const gbx_record *record;
        GBX_TRY(gbx_reader_list_at(reader, GBX_LIST_RUN_ARGS, i, &record));
        const gbx_record_run_arg *argument = (const void *)record;
        uint32_t index = argument->head.arg_index;
        if (!argument->is_tensor && argument->bits == bits && index < run->argument_count &&
            run->arguments[index].name && strcmp(run->arguments[index].name, name) != 0)
            *out_name = run->arguments[index].name;
    }
    return NULL;
}

static gbx_status say_scalar(const saying *s, const gbx_odd_argument *odd, const gbx_entry *entry,
                             const char *name, const char **out_text) {
    uint32_t dtype = gbx_entry_element_dtype(entry);
    const char *found = gbx_text_value(s->t, dtype, odd->found), *other;
    const char *expected = gbx_text_value(s->t, dtype, odd->expected);
    switch (odd->kind) {
    case GBX_ODD_NAMED_SCALAR:
        GBX_TRY(find_run_scalar(s, entry->arg_name, odd->found, &other));
        if (dtype == GBX_UINT64 && odd->expected_dtype != dtype && odd->found <= UINT32_MAX &&
            gbx_dtype_bits(odd->expected_dtype) == 32) { /* a raw word */
            found = gbx_text_value(s->t, odd->expected_dtype, odd->found);
            expected = gbx_text_value(s->t, odd->expected_dtype, odd->expected);
        } else if (odd->expected_dtype != dtype) {
            found = gbx_text_format(s->t, "%s (%s)", found, gbx_dtype_name(dtype));
            expected = gbx_text_format(s->t, "%s (%s)",
                                       gbx_text_value(s->t, odd->expected_dtype, odd->expected),
                                       gbx_dtype_name(odd->expected_dtype));
        }
        *out_text = gbx_text_format(
            s->t, "gets scalar %s = %s, but the run's argument of this name is %s%s%s", name, found,
            expected, other ? "; it is that of the run's argument " : "",
            other ? gbx_text_shown(s->t, other) : "");
        return NULL;
    case GBX_ODD_SCALAR_BITS:
        *out_text = gbx_text_format(s->t, "gets scalar %s = %s, which has the bits of the %s %s",
                                    name, found, gbx_dtype_name(odd->expected_dtype),
                                    gbx_text_value(s->t, odd->expected_dtype, odd->found));
        return NULL;
    case GBX_ODD_NEAR_SCALAR:
        *out_text = gbx_text_format(s->t,
                                    "gets scalar %s = %s, which is no length of any "
                                    "tensor; %s would be",
                                    name, found, gbx_text_number(s->t, odd->expected));
        return NULL;
    case GBX_ODD_LOOSE_SCALAR:
        *out_text = gbx_text_format(s->t,
                                    "gets scalar %s = %s, which varies from task to task and is "
                                    "neither a length of any tensor nor where one begins",
                                    name, found);
        return NULL;
    default:
        *out_text = gbx_text_format(
            s->t, "gets scalar %s = %s, where the pattern of the kernel's %s is %s", name, found,
            gbx_text_counted(s->t, odd->siblings, "other task"), expected);
        return NULL;
    }
}

static const char *say_pattern(const saying *s, const gbx_odd_argument *odd, const char *name) {
    int64_t bytes = (int64_t)(odd->found - odd->expected);
    const char *siblings = gbx_text_counted(s->t, odd->siblings, "other task");
    if (odd->is_size)
        return gbx_text_format(s->t,
                               "gets argument %s with %s, where the pattern of the kernel's %s is "
                               "%s",
                               name, gbx_text_counted(s->t, odd->found, "element"), siblings,
                               gbx_text_count(s->t, odd->expected));
    return gbx_text_format(
        s->t, "gets argument %s %s %s the place where the pattern of the kernel's %s has it", name,
        gbx_text_counted(s->t, (uint64_t)(bytes < 0 ? -bytes : bytes), "byte"),
        bytes > 0 ? "behind" : "before", siblings);
}

static gbx_status find_party(const saying *s, uint64_t number, gbx_party *out_party) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(s->r->dump->entries, number, &entry));
    return gbx_party_find(s->r, entry.head->task, number, out_party);
}

/* "argument 1 out of task 7 (softmax)" */
static gbx_status entry_text(const saying *s, uint64_t number, const char **out_text) {
    gbx_party p;
    GBX_TRY(find_party(s, number, &p));
    *out_text = gbx_text_party(s->t, &p);
    return NULL;
}

/* "task 5 (trsm)" */
static gbx_status task_text(const saying *s, uint64_t number, const char **out_text) {
    gbx_party p;
    GBX_TRY(find_party(s, number, &p));
    *out_text = gbx_text_party_task(s->t, &p);
    return NULL;
}

/* "argument 1 b that begins at 24 in dimension 1", "scalar 4 first = 3" */
static gbx_status side_text(const saying *s, uint64_t number, uint32_t dimension, uint64_t value,
                            const char **out_text) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(s->r->dump->entries, number, &entry));
    const char *name =
        gbx_text_shown(s->t, gbx_text_arg(s->t, entry.head->arg_index, entry.arg_name));
    *out_text = entry.scalar
                    ? gbx_text_format(s->t, "scalar %s = %s", name,
                                      gbx_text_value(s->t, gbx_entry_element_dtype(&entry), value))
                    : gbx_text_format(s->t, "argument %s that begins at %s in dimension %" PRIu32,
                                      name, gbx_text_number(s->t, value), dimension);
    return NULL;
}

static gbx_status say_relation(const saying *s, const gbx_odd_argument *odd,
                               const char **out_text) {
    const char *own, *other;
    int64_t more = (int64_t)odd->difference;
    uint64_t distance = more < 0 ? 0 - odd->difference : odd->difference;
    GBX_TRY(side_text(s, odd->entry, odd->dimension, odd->found, &own));
    GBX_TRY(side_text(s, odd->other_entry, odd->other_dimension, odd->expected, &other));
    *out_text = gbx_text_format(
        s->t, "gets %s, and %s; in the kernel's %s %s", own, other,
        gbx_text_counted(s->t, odd->siblings, "other task"),
        more == 0 ? "both numbers are the same"
                  : gbx_text_format(s->t, "the first number is %s %s than the second",
                                    gbx_text_number(s->t, distance), more > 0 ? "more" : "less"));
    return NULL;
}

/* "[4, 8] with strides [8, 1]" */
static gbx_status layout_text(const saying *s, uint64_t number, const char **out_text) {
    gbx_entry entry;
    gbx_tensor view;
    GBX_TRY(gbx_entries_at(s->r->dump->entries, number, &entry));
    gbx_record_view(entry.tensor, &view);
    const char *shape = "", *strides = "";
    for (uint32_t d = 0; d < view.ndims; ++d) {
        shape = gbx_text_format(s->t, "%s%s%" PRId64, shape, d > 0 ? ", " : "", view.shape[d]);
        strides =
            gbx_text_format(s->t, "%s%s%" PRId64, strides, d > 0 ? ", " : "", view.strides[d]);
    }
    *out_text = gbx_text_format(s->t, "%s [%s] with strides [%s]", gbx_dtype_name(view.dtype),
                                shape, strides);
    return NULL;
}

static gbx_status say_layout(const saying *s, const gbx_odd_argument *odd, const char *name,
                             const char **out_text) {
    const char *own, *usual;
    GBX_TRY(layout_text(s, odd->entry, &own));
    GBX_TRY(layout_text(s, odd->other_entry, &usual));
    *out_text = gbx_text_format(s->t, "gets argument %s as %s, where the kernel's %s get %s", name,
                                own, gbx_text_counted(s->t, odd->siblings, "other task"), usual);
    return NULL;
}

static gbx_status say_source(const saying *s, const gbx_odd_argument *odd, const char *name,
                             const char **out_text) {
    const char *usual, *own = "no task";
    if (odd->other != UINT64_MAX)
        GBX_TRY(task_text(s, odd->other_entry, &own));
    GBX_TRY(task_text(s, odd->reader, &usual));
    *out_text =
        gbx_text_format(s->t,
                        "gets argument %s from %s, where the kernel's %s get it from tasks "
                        "such as %s: one may be missing",
                        name, own, gbx_text_counted(s->t, odd->siblings, "other task"), usual);
    return NULL;
}

static gbx_status say_flow(const saying *s, const gbx_odd_argument *odd, const char *name,
                           const char **out_text) {
    const char *other, *unread, *reader;
    if (odd->kind == GBX_ODD_SOURCE)
        return say_source(s, odd, name, out_text);
    GBX_TRY(entry_text(s, odd->other_entry, &other));
    switch (odd->kind) {
    case GBX_ODD_SWAPPED:
        *out_text = gbx_text_format(
            s->t, "gets %s as argument %s, and the other way round: the two are swapped", other,
            name);
        return NULL;
    case GBX_ODD_LOST_WRITE:
        *out_text =
            gbx_text_format(s->t,
                            "writes argument %s over %s, which no task has read: one of the "
                            "two writes to the wrong place",
                            name, other);
        return NULL;
    case GBX_ODD_ALIAS:
        *out_text = gbx_text_format(s->t, "writes argument %s over its own input, %s", name, other);
        return NULL;
    default:
        GBX_TRY(entry_text(s, odd->unread, &unread));
        GBX_TRY(entry_text(s, odd->reader, &reader));
        *out_text =
            gbx_text_format(s->t,
                            "reads %s as argument %s, and so does %s, but no task reads %s: "
                            "one of the two reads the wrong place",
                            other, name, reader, unread);
        return NULL;
    }
}

static const char *say_new(const saying *s, const gbx_odd_argument *odd, const gbx_entry *entry,
                           const char *name) {
    gbx_tensor view;
    gbx_record_view(entry->tensor, &view);
    return gbx_text_format(s->t,
                           "reads argument %s%s, which holds what new memory holds: no task has "
                           "written it before, and nothing was copied there",
                           name, view.ndims > 0 ? gbx_text_index(s->t, &view, odd->element) : "");
}

gbx_status gbx_diagnosis_say_odd(const gbx_reporting *r, const gbx_odd_argument *odd,
                                 const char **out_text) {
    const saying about = {r, &r->sink->texts}, *s = &about;
    const char *who, *what;
    gbx_entry entry;
    GBX_TRY(gbx_diagnosis_title(r, odd->task, &who));
    GBX_TRY(gbx_entries_at(s->r->dump->entries, odd->entry, &entry));
    const char *name = gbx_text_format(
        s->t, "%s",
        gbx_text_shown(s->t, gbx_text_arg(s->t, entry.head->arg_index, entry.arg_name)));
    if (odd->kind == GBX_ODD_RELATION)
        GBX_TRY(say_relation(s, odd, &what));
    else if (odd->kind == GBX_ODD_UNWRITTEN)
        what = say_new(s, odd, &entry, name);
    else if (odd->kind == GBX_ODD_REPEATED)
        what = gbx_text_format(s->t,
                               "does again what task %" PRIu64
                               " has done: all arguments of the two are the same, as of no other "
                               "two tasks of this kernel",
                               odd->other);
    else if (entry.scalar)
        GBX_TRY(say_scalar(s, odd, &entry, name, &what));
    else if (odd->kind == GBX_ODD_VIEW)
        what = say_pattern(s, odd, name);
    else if (odd->kind == GBX_ODD_LAYOUT)
        GBX_TRY(say_layout(s, odd, name, &what));
    else
        GBX_TRY(say_flow(s, odd, name, &what));
    *out_text = gbx_text_format(s->t, "%s, %s", who, what);
    return NULL;
}
