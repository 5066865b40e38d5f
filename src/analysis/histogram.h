/* The distribution of the finite values of a tensor, as one line of bars. */
#ifndef GBX_ANALYSIS_HISTOGRAM_H
#define GBX_ANALYSIS_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/elements.h"
#include "base/status.h"

enum { GBX_HISTOGRAM_BINS_MAX = 64, GBX_HISTOGRAM_TEXT_BYTES = GBX_HISTOGRAM_BINS_MAX * 4 + 1 };

typedef struct gbx_histogram {
    size_t bin_count;
    double low; /* of the first bin */
    double high;
    uint64_t counts[GBX_HISTOGRAM_BINS_MAX];
    uint64_t finite_count; /* the sum of counts */
} gbx_histogram;

/*
 * Counts all stored elements from `low` to `high`, the smallest and the largest finite one, in bins
 * of equal width, the last one including `high`, as numpy.histogram does. NaN and infinities are
 * left out. If low equals high, there is only one bin.
 */
GBX_MUST_USE gbx_status gbx_histogram_count(const gbx_elements *elements, double low, double high,
                                            size_t bin_count, gbx_histogram *out_histogram);

/* One bar per bin, in eighths of a block or, without Unicode, in " .:-=+*#"; only an empty bin
 * looks empty. Returns out_text. */
const char *gbx_histogram_format(const gbx_histogram *histogram, bool is_unicode,
                                 char out_text[GBX_HISTOGRAM_TEXT_BYTES]);

#endif
