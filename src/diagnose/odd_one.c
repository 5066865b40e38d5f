/* The one value of a sequence that breaks its pattern. */
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "diagnose/odd.h"

enum { LEAST_VALUES = 4, LONGEST_LAG = 64, MOST_VALUES = 1 << 16 };

/* Whether a value is more than once in a sorted array. */
static bool comes_again(const uint64_t *sorted, size_t count, uint64_t value) {
    size_t low = gbx_lower_bound_u64(sorted, count, value);
    return low + 1 < count && sorted[low] == value && sorted[low + 1] == value;
}

/* The value that is there most often, and how often. */
static uint64_t mode_of(const uint64_t *sorted, size_t count, size_t *out_times) {
    uint64_t mode = 0;
    *out_times = 0;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end] == sorted[i]; ++end)
            ;
        if (end - i > *out_times) {
            *out_times = end - i;
            mode = sorted[i];
        }
    }
    return mode;
}

/* All values but one are the same. */
static bool breaks_constant(const uint64_t *values, size_t count, const uint64_t *sorted,
                            size_t *out_position, uint64_t *out_expected) {
    size_t times;
    uint64_t mode = mode_of(sorted, count, &times);
    if (times != count - 1)
        return false;
    for (size_t i = 0; i < count; ++i)
        if (values[i] != mode)
            *out_position = i;
    *out_expected = mode;
    return true;
}

/* How well a pattern tells what would fit. */
typedef enum fit { FITS_NOTHING, FITS_SOMEHOW, FITS_ONE_STEP, IS_UNIFORM } fit;

/* The step to the odd value, and from it on to the next: two of those that come several times. */
static fit find_step(const uint64_t *steps, size_t count, uint64_t both, uint64_t *out_step) {
    size_t times, choices = 0;
    uint64_t mode = mode_of(steps, count, &times), found = mode;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && steps[end] == steps[i]; ++end)
            ;
        if (end - i < 2 || !comes_again(steps, count, both - steps[i]))
            continue;
        found = steps[i];
        ++choices;
    }
    *out_step = choices == 1 ? found : mode;
    return times + 2 == count ? IS_UNIFORM : choices == 1 ? FITS_ONE_STEP : FITS_SOMEHOW;
}

/*
 * Values `lag` places apart differ by amounts that come several times, except for the two
 * differences that one place takes part in.
 */
static fit breaks_steps(const uint64_t *values, size_t count, size_t lag, uint64_t *steps,
                        size_t *out_position, uint64_t *out_expected) {
    size_t times, rare[2], rare_count = 0, step_count = count - lag;
    uint64_t step;
    for (size_t i = 0; i < step_count; ++i)
        steps[i] = values[i + lag] - values[i];
    qsort(steps, step_count, sizeof *steps, gbx_compare_u64);
    mode_of(steps, step_count, &times);
    if (times * 2 < step_count || times < 2)
        return FITS_NOTHING;
    for (size_t i = 0; i < step_count; ++i) {
        if (comes_again(steps, step_count, values[i + lag] - values[i]))
            continue;
        if (rare_count == 2)
            return FITS_NOTHING;
        rare[rare_count++] = i;
    }
    if (rare_count != 2 || rare[1] != rare[0] + lag)
        return FITS_NOTHING;
    fit how = find_step(steps, step_count, values[rare[1] + lag] - values[rare[0]], &step);
    *out_position = rare[1];
    *out_expected = values[rare[0]] + step;
    return values[rare[1]] != *out_expected ? how : FITS_NOTHING;
}

/* The steps of the innermost loop alone do not tell where an outer one goes on. */
static bool breaks_loops(const uint64_t *values, size_t count, uint64_t *steps,
                         size_t *out_position, uint64_t *out_expected) {
    fit best = FITS_NOTHING;
    for (size_t lag = 1; best < IS_UNIFORM && lag <= LONGEST_LAG && lag + LEAST_VALUES <= count;
         ++lag) {
        size_t position;
        uint64_t expected;
        fit how = breaks_steps(values, count, lag, steps, &position, &expected);
        if (how <= best)
            continue;
        best = how;
        *out_position = position;
        *out_expected = expected;
    }
    return best > FITS_NOTHING;
}

/* All values but one, which is not at an end, lie on a line that is not flat. */
static bool breaks_line(const uint64_t *values, size_t count, size_t *out_position,
                        uint64_t *out_expected) {
    for (size_t odd = 1; odd + 1 < count && odd < 3; ++odd) {
        /* Of the first values, at most one is not on it. */
        size_t a = odd == 1 ? 2 : 0, position = 0, others = 0;
        uint64_t step = values[a + 1] - values[a], begin = values[a] - a * step;
        for (size_t i = 0; i < count && others < 2; ++i)
            if (values[i] != begin + i * step) {
                position = i;
                ++others;
            }
        if (others != 1 || step == 0 || position == 0 || position + 1 == count)
            continue;
        *out_position = position;
        *out_expected = begin + position * step;
        return true;
    }
    return false;
}

bool gbx_odd_one(const uint64_t *values, size_t count, size_t *out_position,
                 uint64_t *out_expected) {
    uint64_t *sorted =
        count >= LEAST_VALUES && count <= MOST_VALUES ? malloc(count * sizeof *sorted) : NULL;
    if (!sorted)
        return false;
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, gbx_compare_u64);
    bool is_odd = breaks_constant(values, count, sorted, out_position, out_expected) ||
                  breaks_line(values, count, out_position, out_expected) ||
                  breaks_loops(values, count, sorted, out_position, out_expected);
    free(sorted);
    return is_odd;
}
