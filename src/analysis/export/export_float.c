/*
 * A float32 is scaled by a power of ten, in double arithmetic, to have nine digits before the
 * point. There all that reads back as it lies between 12 and 120 apart, so that looking for a
 * multiple of 1000, 100, 10 and 1 finds the shortest. Whatever is too close to call, given the
 * error of the one multiplication, is left to gbx_f32_format; so are powers of two, whose
 * neighbours are not equally far, and values for which the power of ten would not be exact.
 */
#include "analysis/export/export_float.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/float_bits.h"

enum { DIGITS = 9, EXACT_POWERS = 23 };

#define SCALED_MIN 1e8
#define SCALED_END 1e9
#define DOUBT 1e-6 /* above the error of a product below 1e9, 1.2e-7 */

static const double powers[EXACT_POWERS] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                            1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                            1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double scale(double value, int exponent) {
    return exponent >= 0 ? value * powers[exponent] : value / powers[-exponent];
}

/* Of a normal float, the exponent of ten of its first digit, or one less. */
static int estimate_exponent(uint32_t magnitude_bits) {
    int binary = (int)(magnitude_bits >> 23) - 127;
    return (int)floor((double)binary * 0.30102999566398120);
}

typedef struct scaled {
    double value;
    double low; /* all between these two reads back */
    double high;
    int exponent; /* of ten, of the value's first digit */
} scaled;

static bool scale_float(uint32_t bits, scaled *out) {
    double value = (double)gbx_f32_of_bits(bits);
    double half = ((double)gbx_f32_of_bits(bits + 1) - value) / 2;
    out->exponent = estimate_exponent(bits);
    int power = DIGITS - 1 - out->exponent; /* or one less */
    if (power >= EXACT_POWERS || power - 1 <= -EXACT_POWERS)
        return false;
    out->value = scale(value, power);
    if (out->value >= SCALED_END) {
        ++out->exponent;
        out->value = scale(value, --power);
    }
    out->low = scale(value - half, power);
    out->high = scale(value + half, power);
    return out->value >= SCALED_MIN && out->value < SCALED_END - 1;
}

typedef enum verdict { INSIDE, OUTSIDE, IN_DOUBT } verdict;

static verdict judge(const scaled *number, double candidate) {
    if (candidate > number->low + DOUBT && candidate < number->high - DOUBT)
        return INSIDE;
    if (candidate < number->low - DOUBT || candidate > number->high + DOUBT)
        return OUTSIDE;
    return IN_DOUBT;
}

/* The multiple of `step` that is nearest; in doubt where two are. */
static verdict try_step(const scaled *number, double step, double *out_candidate) {
    double steps = number->value / step;
    double whole = floor(steps + 0.5);
    *out_candidate = whole * step;
    if (fabs(fabs(steps - whole) - 0.5) * step < DOUBT)
        return IN_DOUBT;
    return judge(number, *out_candidate);
}

/* All digits as an integer; 0 where it is too close to call. */
static uint64_t shortest_digits(const scaled *number) {
    static const double steps[] = {1000, 100, 10, 1};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; ++i) {
        double candidate;
        verdict found = try_step(number, steps[i], &candidate);
        if (found == INSIDE && candidate < SCALED_END)
            return (uint64_t)candidate;
        if (found != OUTSIDE)
            return 0;
    }
    return 0;
}

/* As repr lays it out: fixed from 1e-4 to below 1e16. */
static char *put_fixed(char *at, const char *digits, int count, int exponent) {
    if (exponent < 0) {
        memcpy(at, "0.0000", 6);
        at += 1 - exponent;
        memcpy(at, digits, (size_t)count);
        return at + count;
    }
    for (int i = 0; i <= exponent; ++i)
        *at++ = i < count ? digits[i] : '0';
    *at++ = '.';
    for (int i = exponent + 1; i < count; ++i)
        *at++ = digits[i];
    if (count <= exponent + 1)
        *at++ = '0';
    return at;
}

static char *put_scientific(char *at, const char *digits, int count, int exponent) {
    *at++ = digits[0];
    if (count > 1) {
        *at++ = '.';
        memcpy(at, digits + 1, (size_t)count - 1);
        at += count - 1;
    }
    int magnitude = exponent < 0 ? -exponent : exponent;
    *at++ = 'e';
    *at++ = exponent < 0 ? '-' : '+';
    *at++ = (char)('0' + magnitude / 10);
    *at++ = (char)('0' + magnitude % 10);
    return at;
}

size_t gbx_export_f32_format(float value, char out_text[GBX_FLOAT_TEXT_BYTES]) {
    uint32_t bits = gbx_f32_bits(value) & 0x7fffffffu;
    bool is_power_of_two = (bits & 0x7fffffu) == 0; /* and zero, infinity */
    scaled number;
    bool is_normal = bits >= UINT32_C(0x00800000) && bits < UINT32_C(0x7f7fffff);
    uint64_t all =
        !is_power_of_two && is_normal && scale_float(bits, &number) ? shortest_digits(&number) : 0;
    if (all == 0)
        return gbx_f32_format(value, out_text);
    char digits[DIGITS];
    for (int i = DIGITS; i-- > 0; all /= 10)
        digits[i] = (char)('0' + all % 10);
    int count = DIGITS;
    while (digits[count - 1] == '0')
        --count;
    char *at = out_text;
    if (gbx_f32_bits(value) >> 31)
        *at++ = '-';
    at = number.exponent >= -4 && number.exponent < 16
             ? put_fixed(at, digits, count, number.exponent)
             : put_scientific(at, digits, count, number.exponent);
    *at = '\0';
    return (size_t)(at - out_text);
}
