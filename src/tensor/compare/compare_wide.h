/* Wide dtypes: a part of compare_vectors.h. */
#ifndef GBX_TENSOR_COMPARE_COMPARE_WIDE_H
#define GBX_TENSOR_COMPARE_COMPARE_WIDE_H

typedef struct wide_elements {
    doubles got;
    doubles want;
    doubles differences;
    integers distances;
} wide_elements;

VECTOR_INLINE integers wide_at(const unsigned char *elements, uint32_t dtype) {
    if (width_of(dtype) == 4)
        return widen_32(elements, is_signed_of(dtype));
    return load_integers(elements);
}

VECTOR_INLINE doubles doubles_at(const unsigned char *elements, uint32_t dtype) {
    if (dtype == GBX_FLOAT64)
        return load_doubles(elements);
    if (width_of(dtype) == 4)
        return doubles_of_32(elements, is_signed_of(dtype));
    return doubles_of_int64(wide_at(elements, dtype), is_signed_of(dtype));
}

VECTOR_INLINE wide_elements wide_elements_at(const unsigned char *got, const unsigned char *want,
                                             uint32_t dtype) {
    wide_elements e = {.got = doubles_at(got, dtype), .want = doubles_at(want, dtype)};
    if (dtype == GBX_FLOAT64)
        e.distances = differences_64(keys_of(e.got), keys_of(e.want), true);
    else
        e.distances =
            differences_64(wide_at(got, dtype), wide_at(want, dtype), dtype != GBX_UINT64);
    if (dtype == GBX_INT64 || dtype == GBX_UINT64)
        e.differences = doubles_of_int64(e.distances, false);
    else
        e.differences = magnitude(e.got - e.want);
    return e;
}

VECTOR_COLD void raise_worst(gbx_compare_block *block, doubles excess, unsigned lanes,
                             size_t index) {
    double values[LANES];
    store_doubles(values, excess);
    for (size_t i = 0; i < LANES; ++i)
        if (lanes >> i & 1)
            gbx_compare_take_worst(block, values[i], index + i);
}

VECTOR_INLINE void take_worse(gbx_compare_block *block, bool is_exact, doubles differences,
                              doubles tolerance, unsigned mismatches, size_t index) {
    doubles excess = differences;
    if (!is_exact)
        excess = excess / tolerance;
    excess = at_most(excess, all_doubles(DBL_MAX));
    unsigned worse = mismatches & is_above(excess, all_doubles(block->worst_excess));
    if (is_any(worse))
        raise_worst(block, excess, worse, index);
}

/* A difference of finite numbers beyond the range of doubles is a mismatch, whatever the tolerance.
 */
VECTOR_INLINE void take_wide(totals *t, int part, const gbx_compare_rule *rule,
                             const wide_elements *e, size_t index, gbx_compare_block *block) {
    doubles magnitudes = magnitude(e->want);
    doubles tolerance = tolerances(rule, magnitudes);
    unsigned unequal = is_not_zero_64(e->distances);
    unsigned mismatches = is_above_64(e->distances, rule->ulp);
    add_products(t, part, e->got, e->want, e->differences, true);
    if (unequal == 0)
        return;
    if (!rule->is_exact)
        mismatches &=
            is_above(e->differences, tolerance) | is_above(e->differences, all_doubles(DBL_MAX));
    t->unequal += ones(unequal);
    t->max_ulp = larger_64(t->max_ulp, e->distances);
    t->max_abs = larger(t->max_abs, e->differences);
    t->max_rel = larger(t->max_rel, where_not_zero(e->want, e->differences / magnitudes));
    if (mismatches == 0)
        return;
    count_mismatches(t, mismatches, index);
    take_worse(block, rule->is_exact, e->differences, tolerance, mismatches, index);
}

VECTOR_INLINE void take_wide_at(totals *t, int part, const gbx_compare_rule *rule,
                                const unsigned char *got, const unsigned char *want, size_t at,
                                gbx_compare_block *block, uint32_t dtype) {
    const size_t offset = at * width_of(dtype);
    wide_elements e = wide_elements_at(got + offset, want + offset, dtype);
    unsigned rest = dtype == GBX_FLOAT64 ? is_not_finite(e.got) | is_not_finite(e.want) : 0;
    if (is_any(rest)) {
        patch patched;
        take_not_finite(rule, got, want, at, rest, block, &patched);
        e = wide_elements_at(patched.got, patched.want, dtype);
    }
    take_wide(t, part, rule, &e, at, block);
}

VECTOR_INLINE bool take_wide_same(totals *t, const unsigned char *both, uint32_t dtype) {
    totals before = *t;
    unsigned rest = 0;
    for (size_t i = 0; i < CHUNK; i += STEP) {
        doubles low = doubles_at(both + i * width_of(dtype), dtype);
        doubles high = doubles_at(both + (i + LANES) * width_of(dtype), dtype);
        rest |= dtype == GBX_FLOAT64 ? is_not_finite(low) | is_not_finite(high) : 0;
        add_squares(t, 0, low, true);
        add_squares(t, 1, high, true);
    }
    if (rest != 0)
        *t = before;
    return rest == 0;
}

VECTOR_INLINE void take_wide_all(const gbx_compare_rule *rule, const unsigned char *got,
                                 const unsigned char *want, size_t from, size_t end,
                                 gbx_compare_block *block, uint32_t dtype) {
    const gbx_compare_rule kept = *rule;
    const size_t width = width_of(dtype);
    totals t;
    begin_totals(&t, block);
    for (size_t at = from; at < end;) {
        const size_t stop = end - at < CHUNK ? end : at + CHUNK;
        if (stop - at == CHUNK && is_same_chunk(got + at * width, want + at * width, width) &&
            take_wide_same(&t, got + at * width, dtype))
            at = stop;
        for (; at < stop; at += STEP) {
            take_wide_at(&t, 0, &kept, got, want, at, block, dtype);
            take_wide_at(&t, 1, &kept, got, want, at + LANES, block, dtype);
        }
    }
    end_totals(&t, block);
    end_max_ulp(&t, block, true);
}

#endif
