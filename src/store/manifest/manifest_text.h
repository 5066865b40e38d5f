/*
 * Pieces of JSON text, written to memory with enough room; each returns where the next one goes.
 * These are the inner loop of a manifest: a million records are three hundred million bytes.
 */
#ifndef GBX_STORE_MANIFEST_MANIFEST_TEXT_H
#define GBX_STORE_MANIFEST_MANIFEST_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { GBX_VALUE_TEXT_BYTES = 40 }; /* room for any number or value */

#define GBX_PUT(at, literal)                                                                       \
    ((char *)memcpy((at), (literal), sizeof(literal) - 1) + (sizeof(literal) - 1))

static inline char *gbx_put_bool(char *at, bool value) {
    return value ? GBX_PUT(at, "true") : GBX_PUT(at, "false");
}

/* Decimal. */
char *gbx_put_u64(char *at, uint64_t value);
char *gbx_put_i64(char *at, int64_t value);

/* "0x" and 16 digits, in quotes. */
char *gbx_put_hex(char *at, uint64_t value);
/* Only the 16 digits. */
char *gbx_put_hex_digits(char *at, uint64_t value);

/* [1,2,3] */
char *gbx_put_numbers(char *at, const int64_t *numbers, uint32_t count);

/* The shortest text that reads back as the same float; quoted where it is not a JSON number. */
char *gbx_put_f64(char *at, double value);
char *gbx_put_f32(char *at, float value);

/*
 * A value of a dtype from the low bits of `bits`: numbers for floats and integers of up to 32 bits,
 * strings for 64-bit integers, NaN and infinities, true and false for bool. Smaller floats are
 * written as float32.
 */
char *gbx_put_value(char *at, uint32_t dtype, uint64_t bits);

/* min or max of statistics: a double, an int64_t or a uint64_t, by dtype. Written like a value. */
char *gbx_put_extreme(char *at, uint32_t dtype, uint64_t bits);

#endif
