#include "scene/fill.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/float_bits.h"
#include "tensor/npy.h"

#if defined(__clang__)
#    pragma STDC FP_CONTRACT OFF /* the same bits on machines with fused multiply-add */
#endif

#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { BLOCK = 512, THREADS_MAX = 4 };
#define THREAD_ELEMENTS_MIN (UINT64_C(1) << 20)

typedef struct block {
    _Alignas(64) double values[BLOCK];
    union {
        _Alignas(64) uint32_t words[BLOCK];
        uint16_t halves[BLOCK];
    } codes;
} block;

/* Part of a tensor whose elements are packed from the byte `out` on. */
typedef struct span {
    const gbx_fill *fill;
    uint32_t dtype;
    uint64_t first; /* index of its first element in the tensor */
    uint64_t count;
    unsigned char *out;
} span;

/* Every loop below has a constant length and no aliases, so that compilers vectorise it. */

static ALWAYS_INLINE double uniform_at(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)(int64_t)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static ALWAYS_INLINE void random_floats(const gbx_fill *fill, uint64_t first, block *b) {
    const uint64_t seed = fill->seed;
    const double low = fill->low;
    const double range = fill->high - fill->low;
    for (size_t i = 0; i < BLOCK; ++i)
        b->values[i] = low + uniform_at(seed, first + i) * range;
}

static void random_integers(const gbx_fill *fill, uint64_t first, block *b) {
    const double count = fill->high - fill->low + 1.0;
    for (size_t i = 0; i < BLOCK; ++i)
        b->values[i] = fill->low + floor(uniform_at(fill->seed, first + i) * count);
}

static void arange(const gbx_fill *fill, uint64_t first, block *b) {
    for (size_t i = 0; i < BLOCK; ++i)
        b->values[i] = fill->start + (double)(first + i) * fill->step;
}

static void constants(uint32_t dtype, uint64_t bits, block *b) {
    const double value = gbx_dtype_to_f64(dtype, bits);
    for (size_t i = 0; i < BLOCK; ++i)
        b->values[i] = value;
}

static ALWAYS_INLINE void encode_f32(block *b) {
    for (size_t i = 0; i < BLOCK; ++i)
        b->codes.words[i] = gbx_f32_bits((float)b->values[i]);
}

/*
 * float16 and bfloat16: rounds the fraction where it is cut and shifts the exponent. Right for zero
 * and where the result is normal; false when there are others.
 */
static ALWAYS_INLINE bool encode_half(unsigned fraction_bits, unsigned bias, uint16_t top,
                                      block *b) {
    const unsigned shift = 52 - fraction_bits;
    const uint64_t below_half = (UINT64_C(1) << (shift - 1)) - 1;
    const uint64_t rebias = (uint64_t)(1023 - bias) << 52;
    const uint64_t smallest = rebias + (UINT64_C(1) << 52);
    uint64_t others = 0;
    for (size_t i = 0; i < BLOCK; ++i) {
        const uint64_t bits = gbx_f64_bits(b->values[i]);
        const uint64_t magnitude = bits & (UINT64_MAX >> 1);
        const uint64_t rounded =
            (magnitude - rebias + below_half + (magnitude >> shift & 1)) >> shift;
        const uint64_t code = magnitude < smallest ? 0 : rounded < top ? rounded : top;
        others |= (uint64_t)(magnitude < smallest) & (uint64_t)(magnitude != 0);
        b->codes.halves[i] = (uint16_t)(code | (bits >> 63 << 15));
    }
    return others == 0;
}

/* Random numbers of the dtypes that large tensors have. */
static ALWAYS_INLINE bool random_codes(const gbx_fill *fill, uint32_t dtype, uint64_t first,
                                       block *b) {
    random_floats(fill, first, b);
    if (dtype == GBX_BFLOAT16)
        return encode_half(7, 127, 0x7f80, b);
    if (dtype == GBX_FLOAT16)
        return encode_half(10, 15, 0x7c00, b);
    encode_f32(b);
    return true;
}

static bool random_codes_plain(const gbx_fill *fill, uint32_t dtype, uint64_t first, block *b) {
    return random_codes(fill, dtype, first, b);
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))) static bool
random_codes_avx512(const gbx_fill *fill, uint32_t dtype, uint64_t first, block *b) {
    return random_codes(fill, dtype, first, b);
}

static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif

typedef bool (*random_codes_function)(const gbx_fill *fill, uint32_t dtype, uint64_t first,
                                      block *b);

static random_codes_function choose_random_codes(const gbx_fill *fill, uint32_t dtype) {
    if (fill->kind != GBX_FILL_RANDOM ||
        (dtype != GBX_BFLOAT16 && dtype != GBX_FLOAT16 && dtype != GBX_FLOAT32))
        return NULL;
#if defined(__x86_64__)
    if (has_avx512())
        return random_codes_avx512;
#endif
    return random_codes_plain;
}

static void compute_values(const span *part, uint64_t first, block *b) {
    if (part->fill->kind == GBX_FILL_CONSTANT)
        constants(part->dtype, part->fill->value_bits, b);
    else if (part->fill->kind == GBX_FILL_ARANGE)
        arange(part->fill, first, b);
    else if (gbx_dtype_is_float(part->dtype))
        random_floats(part->fill, first, b);
    else
        random_integers(part->fill, first, b);
}

static void fill_span(const span *part) {
    random_codes_function codes = choose_random_codes(part->fill, part->dtype);
    const size_t block_bytes = BLOCK * (size_t)gbx_dtype_bits(part->dtype) / 8;
    block b;
    for (uint64_t done = 0; done < part->count; done += BLOCK) {
        unsigned char *out = part->out + done / BLOCK * block_bytes;
        uint64_t count = part->count - done < BLOCK ? part->count - done : BLOCK;
        if (codes && codes(part->fill, part->dtype, part->first + done, &b)) {
            memcpy(out, &b.codes, count * gbx_dtype_bits(part->dtype) / 8);
            continue;
        }
        compute_values(part, part->first + done, &b);
        gbx_dtype_array_from_f64(part->dtype, b.values, count, out);
    }
}

/* Copies bits, not values: 64-bit integers and the payload of a NaN stay exact. */
static void fill_constant(uint32_t dtype, uint64_t bits, void *bytes, uint64_t size) {
    const size_t width = gbx_dtype_bits(dtype) / 8;
    unsigned char pattern[BLOCK * sizeof bits];
    for (size_t i = 0; i < BLOCK; ++i)
        memcpy(pattern + i * width, &bits, width);
    for (uint64_t at = 0; at < size; at += BLOCK * width)
        memcpy((unsigned char *)bytes + at, pattern,
               size - at < BLOCK * width ? size - at : BLOCK * width);
}

static void *fill_on_thread(void *context) {
    fill_span(context);
    return NULL;
}

static uint64_t choose_threads(uint64_t count) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t most = online < 1 ? 1 : online > THREADS_MAX ? THREADS_MAX : (uint64_t)online;
    uint64_t threads = 1;
    while (threads < most && threads * THREAD_ELEMENTS_MIN <= count)
        ++threads;
    return threads;
}

/* The caller's thread takes the first part, and the part of each thread that does not start. */
static void fill_parallel(const span *whole) {
    const uint64_t threads = choose_threads(whole->count);
    const uint64_t share = (whole->count / threads + BLOCK) / BLOCK * BLOCK;
    span parts[THREADS_MAX];
    pthread_t started[THREADS_MAX];
    bool is_started[THREADS_MAX] = {false};
    for (uint64_t i = 0; i < threads; ++i) {
        uint64_t from = i * share < whole->count ? i * share : whole->count;
        parts[i] = *whole;
        parts[i].first = whole->first + from;
        parts[i].count = whole->count - from < share ? whole->count - from : share;
        parts[i].out = whole->out + from * gbx_dtype_bits(whole->dtype) / 8;
        is_started[i] = i > 0 && pthread_create(&started[i], NULL, fill_on_thread, &parts[i]) == 0;
    }
    for (uint64_t i = 0; i < threads; ++i) {
        if (is_started[i])
            pthread_join(started[i], NULL);
        else
            fill_span(&parts[i]);
    }
}

/* Rows of packed elements start at a byte; those of all other dtypes lie without gaps. */
static void fill_rows(const gbx_fill *fill, const gbx_tensor *tensor, unsigned char *bytes) {
    const uint64_t row = tensor->ndims ? (uint64_t)tensor->shape[tensor->ndims - 1] : 1;
    const uint64_t count = (uint64_t)gbx_tensor_numel(tensor);
    for (uint64_t first = 0; first < count; first += row) {
        span part = {fill, tensor->dtype, first, row, bytes + first / row * ((row + 1) / 2)};
        fill_span(&part);
    }
}

gbx_status gbx_fill_tensor(const gbx_fill *fill, const gbx_tensor *tensor, void *bytes) {
    if (fill->kind == GBX_FILL_FILE)
        return gbx_npy_read(fill->file, tensor, bytes);
    if (fill->kind == GBX_FILL_NONE)
        gbx_poison_tensor(GBX_POISON_RUN, tensor, bytes);
    else if (gbx_dtype_is_packed(tensor->dtype))
        fill_rows(fill, tensor, bytes);
    else if (fill->kind == GBX_FILL_CONSTANT)
        fill_constant(tensor->dtype, fill->value_bits, bytes, gbx_tensor_payload_bytes(tensor));
    else
        fill_parallel(&(span){fill, tensor->dtype, 0, (uint64_t)gbx_tensor_numel(tensor), bytes});
    return NULL;
}

void gbx_poison_tensor(gbx_poison poison, const gbx_tensor *tensor, void *bytes) {
    static const int patterns[2][2] = {{0xab, 0xff}, {0xcd, 0xab}};
    int pattern = patterns[poison][gbx_dtype_is_float(tensor->dtype)];
    memset(bytes, pattern, gbx_tensor_payload_bytes(tensor));
}
