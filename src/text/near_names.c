#include "text/near_names.h"

#include <string.h>

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t gbx_near_distance(const char *wanted, const char *name) {
    const char *a = wanted, *b = name;
    size_t a_length = strnlen(a, GBX_NEAR_BYTES), b_length = strnlen(b, GBX_NEAR_BYTES);
    /* rows[i % 3][k]: from the first i letters of `a` to the first k of `b`. */
    size_t rows[3][GBX_NEAR_BYTES + 1];
    for (size_t k = 0; k <= b_length; ++k)
        rows[0][k] = k;
    for (size_t i = 1; i <= a_length; ++i) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= b_length; ++k) {
            row[k] = least(least(above[k], row[k - 1]) + 1, above[k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                row[k] = least(row[k], two_above[k - 2] + 1);
        }
    }
    size_t distance = 2 * rows[a_length % 3][b_length];
    for (size_t k = 0; k < b_length; ++k)
        distance = least(distance, 2 * rows[a_length % 3][k] + 1);
    return distance;
}

void gbx_near_sort(const char *wanted, const char *const *names, size_t count, size_t *out_order) {
    size_t sorted = 0;
    for (size_t distance = 0; sorted < count && distance <= 2 * GBX_NEAR_BYTES; ++distance)
        for (size_t i = 0; i < count; ++i)
            if (gbx_near_distance(wanted, names[i]) == distance)
                out_order[sorted++] = i;
}
