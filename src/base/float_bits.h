/* The bits of a float64 and back; those of a float32 are in <glassbox/kernel.h>. */
#ifndef GBX_BASE_FLOAT_BITS_H
#define GBX_BASE_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

#include <glassbox/kernel.h>

static inline uint64_t gbx_f64_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double gbx_f64_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
