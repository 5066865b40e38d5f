/*
 * Arguments and cases. Each field of an argument comes from the case if that has it, else from the
 * scene; an error names the place where the field stands.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/internal.h"
#include "tensor/compare/compare.h"
#include "tensor/dtype_table.h"
#include "tensor/npy.h"

typedef enum field {
    NAME,
    DTYPE,
    SHAPE,
    ROLE,
    FILL,
    VALUE,
    LOW,
    HIGH,
    SEED,
    START,
    STEP,
    FILE_PATH,
    RTOL,
    ATOL,
    FIELD_COUNT
} field;

static const char *const field_names[FIELD_COUNT] = {
    [NAME] = "name",   [DTYPE] = "dtype",    [SHAPE] = "shape", [ROLE] = "role", [FILL] = "fill",
    [VALUE] = "value", [LOW] = "low",        [HIGH] = "high",   [SEED] = "seed", [START] = "start",
    [STEP] = "step",   [FILE_PATH] = "file", [RTOL] = "rtol",   [ATOL] = "atol",
};
static const char *const fill_names[] = {"constant", "random", "arange", "file"};
static const char *const case_members[] = {"description", "args"};

/* Which fill each of VALUE to FILE_PATH belongs to. */
static const gbx_fill_kind fill_of_field[FIELD_COUNT] = {
    [VALUE] = GBX_FILL_CONSTANT, [LOW] = GBX_FILL_RANDOM,   [HIGH] = GBX_FILL_RANDOM,
    [SEED] = GBX_FILL_RANDOM,    [START] = GBX_FILL_ARANGE, [STEP] = GBX_FILL_ARANGE,
    [FILE_PATH] = GBX_FILL_FILE,
};

#define EXACT_INTEGER_MAX 9007199254740992.0 /* 2^53 */

typedef struct fields {
    const gbx_cursor *home; /* the argument, or the case's override of it */
    gbx_cursor at[FIELD_COUNT];
    size_t position; /* of the argument */
} fields;

/* --- values --- */

static void integer_range(uint32_t dtype, double *out_min, double *out_max) {
    unsigned bits = gbx_dtype_bits(dtype);
    bool is_signed = gbx_dtype_is_signed(dtype);
    *out_min = is_signed ? -ldexp(1.0, (int)bits - 1) : 0.0;
    *out_max = ldexp(1.0, (int)bits - is_signed) - 1.0;
    if (dtype == GBX_BOOL)
        *out_max = 1.0;
}

static gbx_status check_integer(const gbx_cursor *at, uint32_t dtype, double value) {
    double min;
    double max;
    integer_range(dtype, &min, &max);
    if (value >= min && value <= max && value == floor(value))
        return NULL;
    return gbx_cursor_fail(at, "expected an integer from %.17g to %.17g for %s, got %.17g", min,
                           max, gbx_dtype_name(dtype), value);
}

/* A number that the dtype can hold, true or false for bool, or raw bits as "0x...". */
static gbx_status read_value(const gbx_cursor *at, uint32_t dtype, uint64_t *out_bits) {
    const char *text = json_string_value(at->value);
    unsigned width = gbx_dtype_bits(dtype);
    if (text && text[0] == '0') {
        GBX_TRY(gbx_cursor_hex(at, out_bits));
        if (width == 64 || *out_bits >> width == 0)
            return NULL;
        return gbx_cursor_fail(at, "\"%s\" has more than the %u bits of %s", text, width,
                               gbx_dtype_name(dtype));
    }
    if (dtype == GBX_BOOL && json_is_boolean(at->value)) {
        *out_bits = json_is_true(at->value);
        return NULL;
    }
    double value = 0;
    GBX_TRY(gbx_cursor_number(at, &value));
    if (!gbx_dtype_is_float(dtype)) {
        GBX_TRY(check_integer(at, dtype, value));
        if (width == 64 && json_is_integer(at->value)) {
            *out_bits = (uint64_t)json_integer_value(at->value);
            return NULL;
        }
    }
    *out_bits = gbx_dtype_from_f64(dtype, value);
    return NULL;
}

static gbx_status read_number(const fields *f, field which, double default_value, double *out) {
    *out = default_value;
    if (!f->at[which].value)
        return NULL;
    GBX_TRY(gbx_cursor_number(&f->at[which], out));
    if (isfinite(*out))
        return NULL;
    return gbx_cursor_fail(&f->at[which], "expected a finite number");
}

/* --- fills --- */

static gbx_status check_bound(const fields *f, field which, uint32_t dtype, double value) {
    if (!f->at[which].value || gbx_dtype_is_float(dtype))
        return NULL;
    GBX_TRY(check_integer(&f->at[which], dtype, value));
    if (fabs(value) <= EXACT_INTEGER_MAX)
        return NULL;
    return gbx_cursor_fail(&f->at[which], "%.17g is too large; a random fill takes at most 2^53",
                           value);
}

static gbx_status read_random(const fields *f, uint32_t dtype, gbx_fill *fill) {
    bool is_float = gbx_dtype_is_float(dtype);
    double min;
    double max;
    int64_t seed = (int64_t)f->position + 1;
    integer_range(dtype, &min, &max);
    GBX_TRY(read_number(f, LOW, is_float ? -1.0 : 0.0, &fill->low));
    GBX_TRY(read_number(f, HIGH, is_float ? 1.0 : fmin(10.0, max), &fill->high));
    GBX_TRY(check_bound(f, LOW, dtype, fill->low));
    GBX_TRY(check_bound(f, HIGH, dtype, fill->high));
    if (f->at[SEED].value)
        GBX_TRY(gbx_cursor_integer(&f->at[SEED], 0, INT64_MAX, &seed));
    fill->seed = (uint64_t)seed;
    if (fill->low <= fill->high && isfinite(fill->high - fill->low))
        return NULL;
    return gbx_cursor_fail(f->at[HIGH].value ? &f->at[HIGH] : &f->at[LOW],
                           "low is %g and high is %g; expected low <= high", fill->low, fill->high);
}

static gbx_status read_fill_kind(const fields *f, uint32_t role, gbx_fill_kind *out_kind) {
    size_t kind = 0;
    *out_kind = role == GBX_PARAMETER_SCALAR ? GBX_FILL_CONSTANT
                : role == GBX_ROLE_OUTPUT    ? GBX_FILL_NONE
                                             : GBX_FILL_RANDOM;
    if (f->at[FILL].value) {
        GBX_TRY(gbx_cursor_choice(&f->at[FILL], fill_names, GBX_COUNT_OF(fill_names), &kind));
        *out_kind = (gbx_fill_kind)(kind + GBX_FILL_CONSTANT);
    }
    if (role == GBX_PARAMETER_SCALAR && *out_kind != GBX_FILL_CONSTANT)
        return gbx_cursor_fail(&f->at[FILL], "a scalar cannot be filled; give it a value");
    return NULL;
}

/* Refuses fields of another fill. */
static gbx_status check_fill_fields(const fields *f, gbx_fill_kind kind) {
    for (int i = VALUE; i <= FILE_PATH; ++i) {
        if (!f->at[i].value || fill_of_field[i] == kind)
            continue;
        return gbx_cursor_fail(&f->at[i], "only fill \"%s\" takes this field, but the fill is %s",
                               fill_names[fill_of_field[i] - GBX_FILL_CONSTANT],
                               kind == GBX_FILL_NONE ? "none" : fill_names[kind - 1]);
    }
    return NULL;
}

static gbx_status require(const fields *f, field which) {
    if (f->at[which].value)
        return NULL;
    return gbx_cursor_fail(f->home, "\"%s\" is missing", field_names[which]);
}

static gbx_status read_fill(const fields *f, const gbx_scene *scene, gbx_scene_arg *arg) {
    gbx_fill *fill = &arg->fill;
    GBX_TRY(read_fill_kind(f, arg->role, &fill->kind));
    GBX_TRY(check_fill_fields(f, fill->kind));
    switch (fill->kind) {
    case GBX_FILL_CONSTANT:
        GBX_TRY(require(f, VALUE));
        return read_value(&f->at[VALUE], arg->tensor.dtype, &fill->value_bits);
    case GBX_FILL_RANDOM:
        return read_random(f, arg->tensor.dtype, fill);
    case GBX_FILL_ARANGE:
        GBX_TRY(read_number(f, START, 0.0, &fill->start));
        return read_number(f, STEP, 1.0, &fill->step);
    case GBX_FILL_FILE: {
        GBX_TRY(require(f, FILE_PATH));
        GBX_TRY(gbx_field_file(&f->at[FILE_PATH], scene, &arg->file));
        fill->file = arg->file;
        gbx_status status = gbx_npy_check(arg->file, &arg->tensor);
        if (!status)
            return NULL;
        gbx_status placed = gbx_cursor_fail(&f->at[FILE_PATH], "%s", gbx_status_message(status));
        gbx_status_free(status);
        return placed;
    }
    default:
        return NULL;
    }
}

/* --- arguments --- */

static gbx_status read_shape(const fields *f, uint32_t dtype, gbx_tensor *out_tensor) {
    size_t count = 0;
    int64_t shape[GBX_MAX_DIMS] = {0};
    gbx_cursor one;
    GBX_TRY(require(f, SHAPE));
    GBX_TRY(gbx_cursor_count(&f->at[SHAPE], &count));
    if (count > GBX_MAX_DIMS)
        return gbx_cursor_fail(&f->at[SHAPE], "%zu dimensions; at most %d are possible", count,
                               GBX_MAX_DIMS);
    for (size_t d = 0; d < count; ++d) {
        GBX_TRY(gbx_cursor_element(&f->at[SHAPE], d, &one));
        GBX_TRY(gbx_cursor_integer(&one, 0, INT64_MAX, &shape[d]));
    }
    gbx_status status = gbx_tensor_contiguous(0, dtype, (uint32_t)count, shape, out_tensor);
    if (!status && gbx_tensor_payload_bytes(out_tensor) <= GBX_MAX_GM_BYTES)
        return NULL;
    gbx_status_free(status);
    return gbx_cursor_fail(&f->at[SHAPE], "more than the %" PRIu64 " bytes that a chip can have",
                           GBX_MAX_GM_BYTES);
}

/* If only one is given, the other is 0. */
static gbx_status read_tolerances(const fields *f, gbx_scene_arg *arg) {
    gbx_tolerance tolerance = gbx_tolerance_default(arg->tensor.dtype);
    arg->rtol = tolerance.rtol;
    arg->atol = tolerance.atol;
    if (!f->at[RTOL].value && !f->at[ATOL].value)
        return NULL;
    if (arg->role != GBX_ROLE_OUTPUT && arg->role != GBX_ROLE_INOUT)
        return gbx_cursor_fail(f->at[RTOL].value ? &f->at[RTOL] : &f->at[ATOL],
                               "only outputs have a tolerance, but the role is \"%s\"",
                               gbx_name_brief(&gbx_parameters, arg->role));
    double *const values[] = {&arg->rtol, &arg->atol};
    for (int i = 0; i < 2; ++i) {
        const gbx_cursor *at = &f->at[RTOL + i];
        *values[i] = 0.0;
        if (at->value)
            GBX_TRY(gbx_cursor_number(at, values[i]));
        if (!(*values[i] >= 0.0))
            return gbx_cursor_fail(at, "expected a tolerance of 0 or more, got %g", *values[i]);
    }
    return NULL;
}

static gbx_status read_dtype(const fields *f, uint32_t *out_dtype) {
    const char *text = NULL;
    GBX_TRY(require(f, DTYPE));
    GBX_TRY(gbx_cursor_string(&f->at[DTYPE], &text));
    *out_dtype = gbx_dtype_parse(text);
    if (*out_dtype != GBX_DTYPE_NONE)
        return NULL;
    return gbx_cursor_fail(&f->at[DTYPE], "unknown dtype \"%s\"; expected %s", text,
                           GBX_DTYPE_NAMES);
}

static gbx_status read_arg(const fields *f, const gbx_scene *scene, gbx_scene_arg *arg) {
    uint32_t dtype = GBX_DTYPE_NONE;
    GBX_TRY(require(f, NAME));
    GBX_TRY(gbx_field_name(&f->at[NAME], &arg->name));
    GBX_TRY(require(f, ROLE));
    GBX_TRY(gbx_field_choice(&f->at[ROLE], &gbx_parameters, &arg->role));
    GBX_TRY(read_dtype(f, &dtype));
    if (arg->role != GBX_PARAMETER_SCALAR)
        GBX_TRY(read_shape(f, dtype, &arg->tensor));
    else if (f->at[SHAPE].value)
        return gbx_cursor_fail(&f->at[SHAPE], "a scalar has no shape");
    arg->tensor.dtype = dtype;
    GBX_TRY(read_fill(f, scene, arg));
    return read_tolerances(f, arg);
}

/* --- cases --- */

static gbx_status find_fields(const gbx_cursor *at, fields *out) {
    for (int i = 0; i < FIELD_COUNT; ++i)
        GBX_TRY(gbx_cursor_optional(at, field_names[i], &out->at[i]));
    out->home = at;
    return NULL;
}

/* A case with a fill of its own takes no parameters from the scene's fill. */
static gbx_status override_fields(const gbx_cursor *override, fields *f) {
    fields own;
    GBX_TRY(gbx_cursor_only(override, field_names + 1, FIELD_COUNT - 1));
    GBX_TRY(find_fields(override, &own));
    for (int i = NAME + 1; i < FIELD_COUNT; ++i) {
        bool is_parameter = i >= VALUE && i <= FILE_PATH;
        if (own.at[i].value || (is_parameter && own.at[FILL].value))
            f->at[i] = own.at[i];
    }
    f->home = override;
    return NULL;
}

static gbx_status read_case_arg(const gbx_cursor *args, size_t index, const gbx_cursor *overrides,
                                const gbx_scene *scene, gbx_scene_arg *out_arg) {
    fields f = {.position = index};
    gbx_cursor at;
    gbx_cursor override = {0};
    const char *name = NULL;
    GBX_TRY(gbx_cursor_element(args, index, &at));
    GBX_TRY(gbx_cursor_only(&at, field_names, FIELD_COUNT));
    GBX_TRY(find_fields(&at, &f));
    GBX_TRY(require(&f, NAME));
    GBX_TRY(gbx_cursor_string(&f.at[NAME], &name));
    if (overrides && overrides->value)
        GBX_TRY(gbx_cursor_optional(overrides, name, &override));
    if (override.value)
        GBX_TRY(override_fields(&override, &f));
    return read_arg(&f, scene, out_arg);
}

static gbx_status check_args(const gbx_cursor *at, const gbx_scene_arg *args, size_t count) {
    size_t scalars = 0;
    for (size_t i = 0; i < count; ++i) {
        scalars += args[i].role == GBX_PARAMETER_SCALAR;
        for (size_t k = 0; k < i; ++k) {
            if (strcmp(args[i].name, args[k].name) != 0)
                continue;
            gbx_cursor one;
            gbx_cursor name;
            GBX_TRY(gbx_cursor_element(at, i, &one));
            GBX_TRY(gbx_cursor_member(&one, "name", &name));
            return gbx_cursor_fail(&name, "\"%s\" is already used by args[%zu]", args[i].name, k);
        }
    }
    if (scalars <= GBX_MAX_RUN_SCALARS && count - scalars <= GBX_MAX_RUN_TENSORS)
        return NULL;
    return gbx_cursor_fail(at, "%zu tensors and %zu scalars; at most %d and %d are possible",
                           count - scalars, scalars, GBX_MAX_RUN_TENSORS, GBX_MAX_RUN_SCALARS);
}

static gbx_status read_case_args(const gbx_cursor *args, const gbx_cursor *overrides,
                                 const gbx_scene *scene, gbx_scene_case *one) {
    GBX_TRY(gbx_field_allocate(scene->arg_count, sizeof *one->args, "arguments", &one->args));
    for (size_t i = 0; i < scene->arg_count; ++i)
        GBX_TRY(read_case_arg(args, i, overrides, scene, &one->args[i]));
    return check_args(args, one->args, scene->arg_count);
}

/* A case may override only arguments of the scene. */
static gbx_status check_override_names(const gbx_cursor *overrides, const gbx_scene_case *one,
                                       size_t count) {
    const char *names[GBX_MAX_RUN_TENSORS + GBX_MAX_RUN_SCALARS];
    for (size_t i = 0; i < count; ++i)
        names[i] = one->args[i].name;
    return gbx_cursor_only(overrides, names, count);
}

static gbx_status read_case(const gbx_cursor *at, const gbx_cursor *args, const gbx_scene *scene,
                            gbx_scene_case *one) {
    gbx_cursor overrides;
    one->name = at->name;
    GBX_TRY(gbx_cursor_only(at, case_members, GBX_COUNT_OF(case_members)));
    GBX_TRY(gbx_field_text(at, "description", &one->description));
    GBX_TRY(gbx_cursor_optional(at, "args", &overrides));
    GBX_TRY(read_case_args(args, &overrides, scene, one));
    return overrides.value ? check_override_names(&overrides, one, scene->arg_count) : NULL;
}

gbx_status gbx_scene_read_cases(const gbx_cursor *root, gbx_scene *scene) {
    gbx_cursor args;
    gbx_cursor cases;
    GBX_TRY(gbx_cursor_member(root, "args", &args));
    GBX_TRY(gbx_cursor_count(&args, &scene->arg_count));
    if (scene->arg_count > GBX_MAX_RUN_TENSORS + GBX_MAX_RUN_SCALARS)
        return gbx_cursor_fail(&args,
                               "%zu arguments; at most %d tensors and %d scalars are possible",
                               scene->arg_count, GBX_MAX_RUN_TENSORS, GBX_MAX_RUN_SCALARS);
    GBX_TRY(gbx_cursor_optional(root, "cases", &cases));
    if (cases.value && !json_is_object(cases.value))
        return gbx_cursor_fail(&cases, "expected an object of cases by name");
    size_t count = json_object_size(cases.value);
    GBX_TRY(gbx_field_allocate(count ? count : 1, sizeof *scene->cases, "cases", &scene->cases));
    scene->case_count = count ? count : 1;
    if (count == 0) {
        scene->cases[0].name = "default";
        return read_case_args(&args, NULL, scene, &scene->cases[0]);
    }
    size_t index = 0;
    const char *name;
    json_t *value;
    json_object_foreach(cases.value, name, value) {
        gbx_cursor one = {value, &cases, name, 0};
        GBX_TRY(read_case(&one, &args, scene, &scene->cases[index++]));
    }
    return NULL;
}

void gbx_scene_free_cases(gbx_scene *scene) {
    for (size_t i = 0; scene->cases && i < scene->case_count; ++i) {
        for (size_t k = 0; scene->cases[i].args && k < scene->arg_count; ++k)
            free(scene->cases[i].args[k].file);
        free(scene->cases[i].args);
    }
    free(scene->cases);
}
