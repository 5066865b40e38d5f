/*
 * What vectors of both instruction sets do alike. The file that includes this one has
 *
 *     V(add_pd)    an instruction on whole vectors; SI(and) one on their bits
 *     H, HSI       the same on halves of vectors, of type `half`
 *     load_bytes   as many bytes as a vector has floats, to the low end of 16 bytes
 */
#ifndef GBX_TENSOR_COMPARE_COMPARE_LANES_H
#define GBX_TENSOR_COMPARE_COMPARE_LANES_H

/* --- doubles --- */

#define all_doubles V(set1_pd)
#define fused V(fmadd_pd)
#define fused_minus V(fmsub_pd)
#define at_most V(min_pd) /* `limit` for NaN. */
#define larger V(max_pd)
#define either V(or_pd) /* The bits of both. */

VECTOR_INLINE doubles load_doubles(const void *from) {
    return V(loadu_pd)(from);
}

VECTOR_INLINE void store_doubles(void *to, doubles x) {
    V(storeu_pd)(to, x);
}

VECTOR_INLINE doubles doubles_of_floats(const void *from) {
    return V(cvtps_pd)(H(loadu_ps)(from));
}

/* --- floats --- */

#define all_floats V(set1_ps)
#define fused_floats V(fmadd_ps)
#define larger_floats V(max_ps)
#define smaller_floats V(min_ps)
#define floats_of_integers V(cvtepi32_ps)

VECTOR_INLINE floats load_floats(const void *from) {
    return V(loadu_ps)(from);
}

VECTOR_INLINE void store_floats(void *to, floats x) {
    V(storeu_ps)(to, x);
}

VECTOR_INLINE floats floats_of_float16(const void *from) {
    return V(cvtph_ps)(HSI(loadu)(from));
}

VECTOR_INLINE floats floats_of_e5m2(const void *from) {
    return V(cvtph_ps)(H(slli_epi16)(H(cvtepi8_epi16)(load_bytes(from)), 8));
}

/* A float16 with the same bits has an exponent that is less by 8. */
VECTOR_INLINE floats floats_of_e4m3(const void *from) {
    half code = H(cvtepi8_epi16)(load_bytes(from));
    half bits = H(set1_epi16)(0x7f);
    half is_nan = H(cmpeq_epi16)(HSI(and)(code, bits), bits);
    half value = HSI(and)(H(slli_epi16)(code, 7), H(set1_epi16)((int16_t)0xbf80));
    value = HSI(or)(value, HSI(and)(is_nan, H(set1_epi16)(0x7e00)));
    return V(cvtph_ps)(value) * all_floats(256.0F);
}

/* --- integers --- */

#define larger_32 V(max_epu32)

VECTOR_INLINE integers load_integers(const void *from) {
    return SI(loadu)(from);
}

VECTOR_INLINE void store_integers(void *to, integers x) {
    SI(storeu)(to, x);
}

VECTOR_INLINE integers widen_16(const void *from, bool is_signed) {
    half x = HSI(loadu)(from);
    return is_signed ? V(cvtepi16_epi32)(x) : V(cvtepu16_epi32)(x);
}

VECTOR_INLINE integers widen_8(const void *from) {
    return V(cvtepi8_epi32)(load_bytes(from));
}

VECTOR_INLINE integers widen_32(const void *from, bool is_signed) {
    half x = HSI(loadu)(from);
    return is_signed ? V(cvtepi32_epi64)(x) : V(cvtepu32_epi64)(x);
}

/* Of 32 bits with their sign; modulo 2^32 where it does not fit. */
VECTOR_INLINE integers differences_32(integers a, integers b) {
    return V(abs_epi32)(V(sub_epi32)(a, b));
}

#endif
