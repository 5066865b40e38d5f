#include "dump/host/filter.h"

#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/memory.h"
#include "tensor/dtype_table.h"
#include "text/filter_values.h"
#include "text/near_names.h"

enum { ARGS_MAX = GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS, NAMES_BYTES = 128 };

/* Sets of func_ids, a bit for each. */
typedef struct kernel_set {
    uint64_t bits[GBX_MAX_KERNELS / 64];
    bool is_given;
} kernel_set;

typedef struct parse_state {
    const char *text; /* the complete filter, for messages */
    const gbx_kernel *kernels;
    size_t kernel_count;
    gbx_dump_filter *filter;
    kernel_set by_name;
    kernel_set by_func;
} parse_state;

/* --- values --- */

typedef struct filter_key {
    const char *name;
    uint32_t bit;
    gbx_status (*parse)(parse_state *state, const char *value); /* NULL: one of `names` */
    const gbx_name_set *names;
} filter_key;

static gbx_status parse_name(const parse_state *state, const filter_key *key, const char *value) {
    gbx_dump_filter *filter = state->filter;
    uint8_t *bits = key->bit == GBX_FILTER_ROLE    ? &filter->roles
                    : key->bit == GBX_FILTER_STAGE ? &filter->stages
                                                   : &filter->kinds;
    char known[NAMES_BYTES];
    uint32_t number = 0;
    if (!gbx_name_find(key->names, value, &number)) {
        gbx_name_list(key->names, known, sizeof known);
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "dump filter \"%s\": unknown %s \"%s\"; expected "
                        "one of %s",
                        state->text, key->name, value, known);
    }
    *bits |= (uint8_t)(1u << number);
    return NULL;
}

static gbx_status parse_dtype(parse_state *state, const char *value) {
    uint32_t dtype;
    if (!gbx_dtype_read(value, &dtype))
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "dump filter \"%s\": unknown dtype \"%s\"; expected %s, unknown",
                        state->text, value, GBX_DTYPE_NAMES);
    state->filter->dtypes |= 1u << dtype;
    return NULL;
}

static gbx_status parse_arg(parse_state *state, const char *value) {
    uint64_t first;
    uint64_t last;
    if (!gbx_filter_read_range(value, ARGS_MAX - 1, &first, &last))
        return gbx_fail(
            GBX_INVALID_ARGUMENT,
            "dump filter \"%s\": arg \"%s\" is not a slot from 0 to %d or a range such as 0..3",
            state->text, value, ARGS_MAX - 1);
    for (uint64_t i = first; i <= last; ++i)
        state->filter->args |= UINT64_C(1) << i;
    return NULL;
}

static gbx_status parse_task(parse_state *state, const char *value) {
    gbx_dump_filter *filter = state->filter;
    uint64_t first;
    uint64_t last;
    if (!gbx_filter_read_range(value, UINT64_MAX, &first, &last))
        return gbx_fail(
            GBX_INVALID_ARGUMENT,
            "dump filter \"%s\": task \"%s\" is not a number such as 17 or 0x11, or a range such "
            "as 10..20",
            state->text, value);
    if (filter->range_count == GBX_FILTER_RANGES)
        return gbx_fail(
            GBX_INVALID_ARGUMENT,
            "dump filter \"%s\": more than %d values of task; use ranges, or a second filter",
            state->text, GBX_FILTER_RANGES);
    filter->tasks[filter->range_count].first = first;
    filter->tasks[filter->range_count++].last = last;
    return NULL;
}

/* --- kernels --- */

/* "the kernels are 0 add, 1 mul"; as many as fit, those with names like `wanted` first. */
static gbx_status fail_no_kernel(const parse_state *state, const char *wanted, const char *what) {
    char known[512] = "";
    size_t used = 0;
    size_t count = 0;
    const char *names[GBX_MAX_KERNELS];
    size_t order[GBX_MAX_KERNELS];
    for (size_t i = 0; i < state->kernel_count; ++i)
        names[i] = wanted ? state->kernels[i].name : "";
    gbx_near_sort(wanted ? wanted : "", names, state->kernel_count, order);
    for (; count < state->kernel_count && used + GBX_MAX_KERNEL_NAME + 16 < sizeof known; ++count)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%" PRIu32 " %s",
                                 count ? ", " : "", state->kernels[order[count]].func_id,
                                 state->kernels[order[count]].name);
    char rest[48] = "";
    if (count < state->kernel_count)
        snprintf(rest, sizeof rest, " and %zu more", state->kernel_count - count);
    if (count == 0)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "dump filter \"%s\": %s no kernel: none is registered", state->text, what);
    return gbx_fail(
        GBX_INVALID_ARGUMENT,
        "dump filter \"%s\": %s no kernel; the registered kernels are (func and name) %s%s",
        state->text, what, known, rest);
}

/* By the pattern `value` of names, or by func_ids; fails when no kernel matches. */
static gbx_status add_kernels(parse_state *state, bool is_by_name, const char *value,
                              uint64_t first, uint64_t last) {
    kernel_set *set = is_by_name ? &state->by_name : &state->by_func;
    bool is_found = false;
    char what[128];
    set->is_given = true;
    for (size_t i = 0; i < state->kernel_count; ++i) {
        uint32_t func_id = state->kernels[i].func_id;
        if (is_by_name ? fnmatch(value, state->kernels[i].name, 0) != 0
                       : func_id < first || func_id > last)
            continue;
        set->bits[func_id / 64] |= UINT64_C(1) << func_id % 64;
        is_found = true;
    }
    snprintf(what, sizeof what, "%s \"%.80s\" matches", is_by_name ? "kernel" : "func", value);
    return is_found ? NULL : fail_no_kernel(state, is_by_name ? value : NULL, what);
}

static gbx_status parse_kernel(parse_state *state, const char *value) {
    return add_kernels(state, true, value, 0, 0);
}

static gbx_status parse_func(parse_state *state, const char *value) {
    uint64_t first;
    uint64_t last;
    if (!gbx_filter_read_range(value, UINT64_MAX, &first, &last))
        return gbx_fail(
            GBX_INVALID_ARGUMENT,
            "dump filter \"%s\": func \"%s\" is not a func_id such as 3 or a range such as 0..3",
            state->text, value);
    return add_kernels(state, false, value, first, last);
}

/* --- keys --- */

static const filter_key filter_keys[] = {{"kernel", GBX_FILTER_FUNC, parse_kernel, NULL},
                                         {"func", GBX_FILTER_FUNC, parse_func, NULL},
                                         {"task", GBX_FILTER_TASK, parse_task, NULL},
                                         {"arg", GBX_FILTER_ARG, parse_arg, NULL},
                                         {"role", GBX_FILTER_ROLE, NULL, &gbx_roles},
                                         {"stage", GBX_FILTER_STAGE, NULL, &gbx_stages},
                                         {"kind", GBX_FILTER_KIND, NULL, &gbx_kinds},
                                         {"dtype", GBX_FILTER_DTYPE, parse_dtype, NULL}};

/* Without the blanks around it. */
static char *trim(char *text) {
    while (isspace((unsigned char)*text))
        ++text;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return text;
}

static gbx_status parse_pair(parse_state *state, char *pair) {
    char *value = strchr(pair, '=');
    if (value)
        *value++ = '\0';
    char *key = trim(pair);
    value = value ? trim(value) : NULL;
    if (!value || !*value)
        return gbx_fail(
            GBX_INVALID_ARGUMENT,
            "dump filter \"%s\": \"%s\" has no value; expected KEY=VALUE[,KEY=VALUE...], such as "
            "kernel=softmax*,stage=after_completion",
            state->text, key);
    for (size_t i = 0; i < sizeof filter_keys / sizeof filter_keys[0]; ++i) {
        const filter_key *known = &filter_keys[i];
        if (strcmp(known->name, key) != 0)
            continue;
        state->filter->keys |= known->bit;
        return known->parse ? known->parse(state, value) : parse_name(state, known, value);
    }
    return gbx_fail(
        GBX_INVALID_ARGUMENT,
        "dump filter \"%s\": unknown key \"%s\"; expected kernel, func, task, arg, role, stage, "
        "kind or dtype",
        state->text, key);
}

gbx_status gbx_dump_filter_parse(const char *text, const gbx_kernel *kernels, size_t kernel_count,
                                 gbx_dump_filter *out_filter) {
    parse_state state = {
        .text = text, .kernels = kernels, .kernel_count = kernel_count, .filter = out_filter};
    *out_filter = (gbx_dump_filter){0};
    char *copy = strdup(text);
    if (!copy)
        return gbx_fail_memory("dump filter \"%s\"", text);
    gbx_status status = NULL;
    for (char *rest = copy; rest && !status;)
        status = parse_pair(&state, strsep(&rest, ","));
    free(copy);
    GBX_TRY(status);
    uint64_t any = 0;
    for (size_t i = 0; i < GBX_MAX_KERNELS / 64; ++i) {
        uint64_t named = state.by_name.is_given ? state.by_name.bits[i] : UINT64_MAX;
        uint64_t numbered = state.by_func.is_given ? state.by_func.bits[i] : UINT64_MAX;
        out_filter->funcs[i] = named & numbered;
        any |= out_filter->funcs[i];
    }
    if ((out_filter->keys & GBX_FILTER_FUNC) && !any)
        return fail_no_kernel(&state, NULL, "its kernel and func together match");
    return NULL;
}
