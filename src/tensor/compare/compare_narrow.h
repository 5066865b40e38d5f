/* Narrow dtypes: a part of compare_vectors.h. */
#ifndef GBX_TENSOR_COMPARE_COMPARE_NARROW_H
#define GBX_TENSOR_COMPARE_COMPARE_NARROW_H

/* Somewhat less than half of the distance to the next double. */
#define HALF_STEP (0.5 - 0x1p-30)

/* --- extremes --- */

/*
 * Divisions would take most of the time. So the quotients of max_rel and of the excess are first
 * compared with what they would have to exceed, without dividing: d / w rounds to more than
 * `quotient` only if d > (quotient + half_step) * w. Only if that holds are they divided.
 */
typedef struct limit {
    doubles quotient;
    doubles half_step;
} limit;

/*
 * What floats can decide: a difference below a floor is less than what it stands for, one
 * above a ceiling is more, by more than floats are off. Differences below FLT_MIN are exact, and
 * bounds there rounded to the same multiples: those that are not below stay so.
 *
 * A product of a subnormal number takes a processor up to a hundred times as long as others: of
 * magnitudes, ceilings are found of LEAST_MAGNITUDE at least, and floors of so much less.
 */
#define LEAST_MAGNITUDE 0x1p-60F

typedef struct bound {
    floats of_magnitude;
    floats constant;
} bound;

typedef struct limits {
    limit relative;
    limit excess;
    floats relative_floor;
    bound excess_floor;
    bound floor; /* of the tolerance */
    bound ceiling;
} limits;

/* Not negative. No quotient of floats is beyond 2^1000. */
VECTOR_INLINE limit limit_of(double quotient) {
    double kept = fmin(quotient, 0x1p1000);
    return (limit){all_doubles(kept), all_doubles((nextafter(kept, INFINITY) - kept) * HALF_STEP)};
}

VECTOR_INLINE float floor_of(double number) {
    double below = number < 0x1p100 ? number * (1.0 - 0x1p-20) : 0x1p100;
    return below < FLT_MIN ? 0.0F : (float)below;
}

VECTOR_INLINE float ceiling_of(double number) {
    double above = number < 0x1p100 ? number * (1.0 + 0x1p-20) : INFINITY;
    return above < FLT_MIN ? FLT_MIN : (float)above;
}

VECTOR_INLINE floats bound_at(const bound *b, floats magnitudes) {
    return fused_floats(b->of_magnitude, magnitudes, b->constant);
}

/* Before the first mismatch every one is the worst: its excess is 1, except for rounding. */
VECTOR_COLD void set_limits(limits *l, const gbx_compare_rule *rule,
                            const gbx_compare_block *block) {
    double least = rule->is_exact ? 0.0 : 1.0 - DBL_EPSILON;
    double excess = block->worst_excess < 0.0 ? 0.0 : block->worst_excess;
    /* Integers are often as far off as the worst, and further only in steps of 1. */
    double more = rule->is_exact && !gbx_dtype_is_float(rule->dtype) ? excess + 0.5 : excess;
    l->relative = limit_of(block->max_rel);
    l->excess = limit_of(block->worst_excess < 0.0 ? least : excess);
    l->relative_floor = all_floats(floor_of(block->max_rel));
    l->excess_floor =
        (bound){all_floats(floor_of(more * rule->rtol)), all_floats(floor_of(more * rule->atol))};
    l->floor = (bound){all_floats(floor_of(rule->rtol)),
                       all_floats(rule->is_exact ? 0.0F : floor_of(rule->atol))};
    l->ceiling = (bound){all_floats(ceiling_of(rule->rtol)), all_floats(ceiling_of(rule->atol))};
}

/* Negative where d / w may round to more. */
VECTOR_INLINE doubles exceeds(const limit *l, doubles d, doubles w) {
    return fused(l->half_step, w, fused_minus(l->quotient, w, d));
}

/* STEP elements. */
VECTOR_COLD void raise_extremes(limits *l, const gbx_compare_rule *rule, const double *got,
                                const double *want, size_t index, unsigned mismatches,
                                gbx_compare_block *block) {
    for (size_t i = 0; i < STEP; ++i) {
        double d = fabs(got[i] - want[i]), w = fabs(want[i]);
        double excess = d / (rule->atol + rule->rtol * w);
        if (w != 0.0)
            block->max_rel = fmax(block->max_rel, d / w);
        if (mismatches >> i & 1)
            gbx_compare_take_worst(block, fmin(excess, DBL_MAX), index + i);
    }
    set_limits(l, rule, block);
}

/* --- elements --- */

VECTOR_INLINE integers codes_at(const unsigned char *elements, uint32_t dtype) {
    if (width_of(dtype) == 4)
        return load_integers(elements);
    bool has_sign = gbx_dtype_table[dtype].class != GBX_CLASS_UNSIGNED;
    return width_of(dtype) == 2 ? widen_16(elements, has_sign) : widen_8(elements);
}

VECTOR_INLINE floats floats_at(const unsigned char *elements, uint32_t dtype) {
    switch ((gbx_compare_kind)gbx_dtype_table[dtype].compare) {
    case GBX_COMPARE_FLOAT32:
        return load_floats(elements);
    case GBX_COMPARE_FLOAT16:
        return floats_of_float16(elements);
    case GBX_COMPARE_BFLOAT16:
        return floats_of_codes(codes_at(elements, dtype), 16);
    case GBX_COMPARE_FLOAT8_E4M3:
        return floats_of_e4m3(elements);
    case GBX_COMPARE_FLOAT8_E5M2:
        return floats_of_e5m2(elements);
    case GBX_COMPARE_INTEGER16:
        return floats_of_integers(codes_at(elements, dtype));
    case GBX_COMPARE_WIDE:
    case GBX_COMPARE_BYTES:
    case GBX_COMPARE_PLAIN:
        break;
    }
    __builtin_unreachable(); /* take_elements calls this for no other kind */
}

/* How many values of the dtype lie from one to the other: across zero where the signs differ. */
VECTOR_INLINE integers distances_at(const unsigned char *got, const unsigned char *want,
                                    uint32_t dtype) {
    integers a = codes_at(got, dtype), b = codes_at(want, dtype);
    integers beside = differences_32(a, b);
    if (gbx_dtype_table[dtype].class != GBX_CLASS_FLOAT)
        return beside;
    return across_zero_32(a, b, (int)(uint32_t)gbx_float_codes_of(dtype).sign, beside);
}

/* STEP elements. */
typedef struct narrow_elements {
    doubles got[2];
    doubles want[2];
    floats magnitudes; /* of those of want, LEAST_MAGNITUDE or more */
    floats differences;
    integers distances;
} narrow_elements;

/* Elements that are not floats go through memory: loading doubles from there is the least work. */
VECTOR_INLINE narrow_elements narrow_elements_at(const unsigned char *got,
                                                 const unsigned char *want, uint32_t dtype) {
    float room[2][STEP];
    floats g = floats_at(got, dtype), w = floats_at(want, dtype);
    narrow_elements e = {.magnitudes =
                             larger_floats(magnitude_floats(w), all_floats(LEAST_MAGNITUDE)),
                         .differences = magnitude_floats(g - w),
                         .distances = distances_at(got, want, dtype)};
    if (dtype != GBX_FLOAT32) {
        store_floats(room[0], g);
        store_floats(room[1], w);
    }
    const float *floats_got = dtype == GBX_FLOAT32 ? (const void *)got : room[0];
    const float *floats_want = dtype == GBX_FLOAT32 ? (const void *)want : room[1];
    GBX_UNROLL
    for (int i = 0; i < 2; ++i) {
        e.got[i] = doubles_of_floats(floats_got + (size_t)i * LANES);
        e.want[i] = doubles_of_floats(floats_want + (size_t)i * LANES);
    }
    return e;
}

/* Negative where max_rel may be exceeded. */
VECTOR_INLINE doubles exceeds_relative(const limits *l, doubles g, doubles w) {
    return exceeds(&l->relative, where_not_zero(w, magnitude(g - w)), magnitude(w));
}

/* LANES elements; those in `apart` are more than `ulp` values apart. Returns those beyond their
 * tolerance; *out_raised is negative where an extreme may be exceeded. */
VECTOR_INLINE unsigned judge_lanes(const limits *l, const gbx_compare_rule *rule, doubles g,
                                   doubles w, unsigned apart, doubles *out_raised) {
    doubles d = magnitude(g - w), magnitudes = magnitude(w);
    doubles raised = exceeds_relative(l, g, w);
    if (rule->is_exact) {
        doubles far = in_lanes(apart, d);
        *out_raised = either(raised, exceeds(&l->excess, far, all_doubles(1.0)));
        return UINT_MAX;
    }
    doubles tolerance = tolerances(rule, magnitudes);
    *out_raised = either(raised, exceeds(&l->excess, d, tolerance));
    return is_above(d, tolerance);
}

VECTOR_INLINE void judge(totals *t, limits *l, const gbx_compare_rule *rule,
                         const narrow_elements *e, size_t index, unsigned apart,
                         gbx_compare_block *block) {
    doubles raised[2];
    unsigned low = judge_lanes(l, rule, e->got[0], e->want[0], apart, &raised[0]);
    unsigned high = judge_lanes(l, rule, e->got[1], e->want[1], apart >> LANES, &raised[1]);
    unsigned mismatches = apart & ((low & ((1U << LANES) - 1)) | high << LANES);
    count_mismatches(t, mismatches, index);
    if (is_any(has_sign(either(raised[0], raised[1])))) {
        double got[STEP], want[STEP];
        GBX_UNROLL
        for (int i = 0; i < 2; ++i) {
            store_doubles(got + (size_t)i * LANES, e->got[i]);
            store_doubles(want + (size_t)i * LANES, e->want[i]);
        }
        raise_extremes(l, rule, got, want, index, mismatches, block);
    }
}

/* Whether one of those in `lanes` may be an extreme, or whether floats cannot show that it is
 * beyond its tolerance. */
VECTOR_INLINE bool is_hard(const limits *l, const gbx_compare_rule *rule, const narrow_elements *e,
                           unsigned lanes, floats lowered, floats relative) {
    if ((lanes & is_not_below_floats(e->differences, relative)) != 0 &&
        is_any(has_sign(either(exceeds_relative(l, e->got[0], e->want[0]),
                               exceeds_relative(l, e->got[1], e->want[1])))))
        return true;
    floats excess = bound_at(&l->excess_floor, lowered);
    unsigned hard = is_not_below_floats(e->differences, excess);
    if (!rule->is_exact)
        hard |= is_not_below_floats(bound_at(&l->ceiling, e->magnitudes), e->differences);
    return (lanes & hard) != 0;
}

/* Elements that floats show to be near, and not to be extremes, need no more work. */
VECTOR_INLINE void sift(totals *t, limits *l, const gbx_compare_rule *rule,
                        const narrow_elements *e, size_t index, unsigned unequal,
                        gbx_compare_block *block) {
    floats lowered = e->magnitudes - all_floats(LEAST_MAGNITUDE);
    floats relative = l->relative_floor * lowered;
    floats least = smaller_floats(relative, bound_at(&l->floor, lowered));
    unsigned held = unequal & is_not_below_floats(e->differences, least);
    if (held == 0)
        return;
    uint32_t ulp = rule->ulp < UINT32_MAX ? (uint32_t)rule->ulp : UINT32_MAX;
    unsigned apart = is_above_32(e->distances, ulp);
    if (is_hard(l, rule, e, held, lowered, relative))
        judge(t, l, rule, e, index, apart, block);
    else
        count_mismatches(t, held & apart, index);
}

VECTOR_INLINE void take_step(totals *t, limits *l, const gbx_compare_rule *rule,
                             const narrow_elements *e, size_t index, gbx_compare_block *block) {
    unsigned unequal = is_not_zero_32(e->distances);
    t->max_ulp = larger_32(t->max_ulp, e->distances);
    t->unequal += ones(unequal);
    GBX_UNROLL
    for (int i = 0; i < 2; ++i) {
        doubles difference = e->got[i] - e->want[i];
        add_products(t, i, e->got[i], e->want[i], difference, false);
        t->max_abs = larger_magnitude(difference, t->max_abs);
    }
    sift(t, l, rule, e, index, unequal, block);
}

/* If one is not finite: false, and nothing is added. */
VECTOR_INLINE bool take_same(totals *t, const unsigned char *both, uint32_t dtype) {
    totals before = *t;
    unsigned rest = 0;
    for (size_t i = 0; i < CHUNK; i += STEP) {
        float room[STEP];
        floats x = floats_at(both + i * width_of(dtype), dtype);
        store_floats(room, x);
        rest |= is_not_finite_floats(x);
        add_squares(t, 0, doubles_of_floats(room), false);
        add_squares(t, 1, doubles_of_floats(room + LANES), false);
    }
    if (rest != 0)
        *t = before;
    return rest == 0;
}

VECTOR_INLINE void fetch_ahead(const unsigned char *got, const unsigned char *want, size_t bytes) {
    for (size_t i = 0; i < bytes; i += GBX_LINE_BYTES) {
        _mm_prefetch((const char *)got + AHEAD_BYTES + i, _MM_HINT_T0);
        _mm_prefetch((const char *)want + AHEAD_BYTES + i, _MM_HINT_T0);
    }
}

VECTOR_INLINE void take_narrow(const gbx_compare_rule *rule, const unsigned char *got,
                               const unsigned char *want, size_t from, size_t end,
                               gbx_compare_block *block, uint32_t dtype) {
    const gbx_compare_rule kept = *rule;
    const size_t width = width_of(dtype);
    limits l;
    totals t;
    set_limits(&l, &kept, block);
    begin_totals(&t, block);
    for (size_t at = from; at < end;) {
        const size_t stop = end - at < CHUNK ? end : at + CHUNK;
        fetch_ahead(got + at * width, want + at * width, (stop - at) * width);
        if (stop - at == CHUNK && is_same_chunk(got + at * width, want + at * width, width) &&
            take_same(&t, got + at * width, dtype))
            at = stop;
        for (; at < stop; at += STEP) {
            const unsigned char *g = got + at * width, *w = want + at * width;
            narrow_elements e = narrow_elements_at(g, w, dtype);
            /* Also infinite where finite elements are further apart than a float can hold. */
            if (is_any(is_not_finite_floats(e.differences))) {
                patch patched;
                unsigned rest = is_not_finite_floats(floats_at(g, dtype)) |
                                is_not_finite_floats(floats_at(w, dtype));
                take_not_finite(rule, got, want, at, rest, block, &patched);
                e = narrow_elements_at(patched.got, patched.want, dtype);
            }
            take_step(&t, &l, &kept, &e, at, block);
        }
    }
    end_totals(&t, block);
    end_max_ulp(&t, block, false);
}

#endif
