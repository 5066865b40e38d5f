#include "analysis/histogram.h"

#include <math.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/numbers.h"

enum { CHUNK_COUNT = 4096, TALLY_COUNT = 4 };

/* All values are multiples of `unit`, a power of two. */
typedef struct bin_layout {
    size_t count;
    double unit;
    double low;
    double high;
    double scale; /* bins per unit */
    double starts[GBX_HISTOGRAM_BINS_MAX];
    double ends[GBX_HISTOGRAM_BINS_MAX]; /* infinity for the last one: it includes `high` */

    /* Several sets of counts, used in turn: an increment need not wait for the previous one. The
     * last place of each counts what lies outside. */
    uint64_t tallies[TALLY_COUNT][GBX_HISTOGRAM_BINS_MAX + 1];
} bin_layout;

/* 1, unless the width of the range, or its inverse, overflows a float64. */
static double unit_of(double low, double high, size_t bin_count) {
    if (!isfinite(high - low))
        return 4.0;
    return isfinite((double)bin_count / (high - low)) ? 1.0 : 0x1p-600;
}

/* Places the bins as numpy.linspace does. */
static void place_bins(bin_layout *bins, double low, double high, size_t count) {
    memset(bins, 0, sizeof *bins);
    bins->count = low < high ? count : 1;
    bins->unit = low < high ? unit_of(low, high, count) : 1.0;
    bins->low = low / bins->unit;
    bins->high = high / bins->unit;
    const double width = bins->high - bins->low;
    const double step = width / (double)bins->count;
    for (size_t i = 0; i < bins->count; ++i) {
        bins->starts[i] = (double)i * step + bins->low;
        bins->ends[i] = (double)(i + 1) * step + bins->low;
    }
    bins->ends[bins->count - 1] = INFINITY;
    bins->scale = width > 0.0 ? (double)bins->count / width : 0.0;
}

/* Rounding may move the product across an edge: the edges decide. */
static inline size_t bin_of(const bin_layout *bins, double value) {
    if (!(value >= bins->low && value <= bins->high))
        return GBX_HISTOGRAM_BINS_MAX;
    const int last = (int)bins->count - 1;
    int index = (int)((value - bins->low) * bins->scale);
    index = index < last ? index : last;
    index -= value < bins->starts[index];
    index += value >= bins->ends[index];
    return (size_t)index;
}

static void decode(uint32_t dtype, const uint64_t *bits, size_t count, double unit,
                   double *out_values) {
    if (dtype == GBX_FLOAT32 && unit == 1.0) {
        for (size_t i = 0; i < count; ++i)
            out_values[i] = (double)gbx_f32_of_bits((uint32_t)bits[i]);
        return;
    }
    for (size_t i = 0; i < count; ++i)
        out_values[i] = gbx_dtype_to_f64(dtype, bits[i]) / unit;
}

gbx_status gbx_histogram_count(const gbx_elements *elements, double low, double high,
                               size_t bin_count, gbx_histogram *out_histogram) {
    if (!isfinite(low) || !isfinite(high) || low > high || bin_count == 0 ||
        bin_count > GBX_HISTOGRAM_BINS_MAX)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "making a histogram: cannot use %zu bins from %g to %g; give 1 to %d bins "
                        "and a finite range",
                        bin_count, low, high, GBX_HISTOGRAM_BINS_MAX);
    bin_layout bins;
    place_bins(&bins, low, high, bin_count);
    uint64_t bits[CHUNK_COUNT];
    double values[CHUNK_COUNT];
    for (uint64_t at = 0; at < elements->stored; at += CHUNK_COUNT) {
        const size_t count = (size_t)gbx_min_u64(elements->stored - at, CHUNK_COUNT);
        GBX_TRY(gbx_elements_read(elements, at, count, bits));
        decode(elements->dtype, bits, count, bins.unit, values);
        for (size_t i = 0; i < count; ++i)
            ++bins.tallies[i % TALLY_COUNT][bin_of(&bins, values[i])];
    }
    *out_histogram = (gbx_histogram){.bin_count = bins.count, .low = low, .high = high};
    for (size_t i = 0; i < bins.count; ++i) {
        for (size_t k = 0; k < TALLY_COUNT; ++k)
            out_histogram->counts[i] += bins.tallies[k][i];
        out_histogram->finite_count += out_histogram->counts[i];
    }
    return NULL;
}

/* 0 for an empty bin, `level_count` for the fullest one, rounded up in between. */
static size_t level_of(uint64_t count, uint64_t fullest, size_t level_count) {
    if (count == 0)
        return 0;
    const size_t level = (size_t)ceil((double)count / (double)fullest * (double)level_count);
    return level < level_count ? level : level_count;
}

const char *gbx_histogram_format(const gbx_histogram *histogram, bool is_unicode,
                                 char out_text[GBX_HISTOGRAM_TEXT_BYTES]) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const marks[] = {" ", ".", ":", "-", "=", "+", "*", "#"};
    const char *const *bars = is_unicode ? blocks : marks;
    const size_t level_count = (is_unicode ? sizeof blocks : sizeof marks) / sizeof *bars - 1;
    uint64_t fullest = 0;
    for (size_t i = 0; i < histogram->bin_count; ++i)
        fullest = histogram->counts[i] > fullest ? histogram->counts[i] : fullest;
    char *at = out_text;
    for (size_t i = 0; i < histogram->bin_count; ++i)
        at = stpcpy(at, bars[level_of(histogram->counts[i], fullest, level_count)]);
    *at = '\0';
    return out_text;
}
