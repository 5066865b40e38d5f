/*
 * Included before a kernel that is compiled with the memory sanitizer. That takes what an atomic
 * operation writes for initialised, whatever was written, and does not look at the memory that is
 * updated. Here a branch uses both first, in the line of the operation.
 */
#ifndef GBX_REPLAY_SANITIZE_ATOMICS_H
#define GBX_REPLAY_SANITIZE_ATOMICS_H

#pragma clang system_header /* no warnings where these are used */

#define GBX_USE_BYTES(pointer, bytes)                                                              \
    for (unsigned long gbx_i = 0; gbx_i < (bytes); ++gbx_i)                                        \
        if (((const volatile char *)(pointer))[gbx_i])                                             \
    __asm__ volatile("")

#define GBX_USE_PLACE(p) /* evaluates to p */                                                      \
    __extension__({                                                                                \
        __typeof__(&*(p)) gbx_place = (p);                                                         \
        GBX_USE_BYTES(gbx_place, sizeof *gbx_place);                                               \
        gbx_place;                                                                                 \
    })
/* The operand becomes `type` first, because a literal 0 may be meant as a pointer. */
#define GBX_USE_AS(type, v)                                                                        \
    __extension__({                                                                                \
        type gbx_operand = (v);                                                                    \
        GBX_USE_BYTES(&gbx_operand, sizeof gbx_operand);                                           \
        gbx_operand;                                                                               \
    })
/* A comma: without qualifiers, _Atomic among them. */
#define GBX_VALUE(p, v) GBX_USE_AS(__typeof__((0, *(p))), v)
#define GBX_USE(v) GBX_USE_AS(__typeof__((0, (v))), v)

/* What is there before is lost, or only handed out. */
#define __atomic_store_n(p, v, order) __atomic_store_n(p, GBX_VALUE(p, v), order)
#define __atomic_exchange_n(p, v, order) __atomic_exchange_n(p, GBX_VALUE(p, v), order)
#define __atomic_store(p, from, order) __atomic_store(p, GBX_USE_PLACE(from), order)
#define __atomic_exchange(p, from, to, order) __atomic_exchange(p, GBX_USE_PLACE(from), to, order)
#define __c11_atomic_store(p, v, order) __c11_atomic_store(p, GBX_VALUE(p, v), order)
#define __c11_atomic_exchange(p, v, order) __c11_atomic_exchange(p, GBX_VALUE(p, v), order)
#define GBX_SET(operation, p, v, ...) operation(p, GBX_VALUE(p, v))
#define __sync_lock_test_and_set(p, ...) GBX_SET(__sync_lock_test_and_set, p, __VA_ARGS__, 0)

/* The sanitizer itself looks at what is expected. */
#define __atomic_compare_exchange_n(p, expected, v, ...)                                           \
    __atomic_compare_exchange_n(GBX_USE_PLACE(p), expected, GBX_VALUE(p, v), __VA_ARGS__)
#define __atomic_compare_exchange(p, expected, from, ...)                                          \
    __atomic_compare_exchange(GBX_USE_PLACE(p), expected, GBX_USE_PLACE(from), __VA_ARGS__)
#define __c11_atomic_compare_exchange_strong(p, expected, v, ...)                                  \
    __c11_atomic_compare_exchange_strong(GBX_USE_PLACE(p), expected, GBX_VALUE(p, v), __VA_ARGS__)
#define __c11_atomic_compare_exchange_weak(p, expected, v, ...)                                    \
    __c11_atomic_compare_exchange_weak(GBX_USE_PLACE(p), expected, GBX_VALUE(p, v), __VA_ARGS__)
#define GBX_SWAP(operation, p, expected, v, ...)                                                   \
    operation(GBX_USE_PLACE(p), expected, GBX_VALUE(p, v))
#define __sync_bool_compare_and_swap(p, expected, ...)                                             \
    GBX_SWAP(__sync_bool_compare_and_swap, p, expected, __VA_ARGS__, 0)
#define __sync_val_compare_and_swap(p, expected, ...)                                              \
    GBX_SWAP(__sync_val_compare_and_swap, p, expected, __VA_ARGS__, 0)

#define GBX_UPDATE(operation, p, v, order) operation(GBX_USE_PLACE(p), GBX_USE(v), order)
#define __atomic_fetch_add(p, v, order) GBX_UPDATE(__atomic_fetch_add, p, v, order)
#define __atomic_fetch_sub(p, v, order) GBX_UPDATE(__atomic_fetch_sub, p, v, order)
#define __atomic_fetch_and(p, v, order) GBX_UPDATE(__atomic_fetch_and, p, v, order)
#define __atomic_fetch_or(p, v, order) GBX_UPDATE(__atomic_fetch_or, p, v, order)
#define __atomic_fetch_xor(p, v, order) GBX_UPDATE(__atomic_fetch_xor, p, v, order)
#define __atomic_fetch_nand(p, v, order) GBX_UPDATE(__atomic_fetch_nand, p, v, order)
#define __atomic_fetch_max(p, v, order) GBX_UPDATE(__atomic_fetch_max, p, v, order)
#define __atomic_fetch_min(p, v, order) GBX_UPDATE(__atomic_fetch_min, p, v, order)
#define __atomic_add_fetch(p, v, order) GBX_UPDATE(__atomic_add_fetch, p, v, order)
#define __atomic_sub_fetch(p, v, order) GBX_UPDATE(__atomic_sub_fetch, p, v, order)
#define __atomic_and_fetch(p, v, order) GBX_UPDATE(__atomic_and_fetch, p, v, order)
#define __atomic_or_fetch(p, v, order) GBX_UPDATE(__atomic_or_fetch, p, v, order)
#define __atomic_xor_fetch(p, v, order) GBX_UPDATE(__atomic_xor_fetch, p, v, order)
#define __atomic_nand_fetch(p, v, order) GBX_UPDATE(__atomic_nand_fetch, p, v, order)
#define __atomic_max_fetch(p, v, order) GBX_UPDATE(__atomic_max_fetch, p, v, order)
#define __atomic_min_fetch(p, v, order) GBX_UPDATE(__atomic_min_fetch, p, v, order)
#define __c11_atomic_fetch_add(p, v, order) GBX_UPDATE(__c11_atomic_fetch_add, p, v, order)
#define __c11_atomic_fetch_sub(p, v, order) GBX_UPDATE(__c11_atomic_fetch_sub, p, v, order)
#define __c11_atomic_fetch_and(p, v, order) GBX_UPDATE(__c11_atomic_fetch_and, p, v, order)
#define __c11_atomic_fetch_or(p, v, order) GBX_UPDATE(__c11_atomic_fetch_or, p, v, order)
#define __c11_atomic_fetch_xor(p, v, order) GBX_UPDATE(__c11_atomic_fetch_xor, p, v, order)
#define __c11_atomic_fetch_nand(p, v, order) GBX_UPDATE(__c11_atomic_fetch_nand, p, v, order)
#define __c11_atomic_fetch_max(p, v, order) GBX_UPDATE(__c11_atomic_fetch_max, p, v, order)
#define __c11_atomic_fetch_min(p, v, order) GBX_UPDATE(__c11_atomic_fetch_min, p, v, order)

#define GBX_SYNC(operation, p, v, ...) operation(GBX_USE_PLACE(p), GBX_USE(v))
#define __sync_fetch_and_add(p, ...) GBX_SYNC(__sync_fetch_and_add, p, __VA_ARGS__, 0)
#define __sync_fetch_and_sub(p, ...) GBX_SYNC(__sync_fetch_and_sub, p, __VA_ARGS__, 0)
#define __sync_fetch_and_or(p, ...) GBX_SYNC(__sync_fetch_and_or, p, __VA_ARGS__, 0)
#define __sync_fetch_and_and(p, ...) GBX_SYNC(__sync_fetch_and_and, p, __VA_ARGS__, 0)
#define __sync_fetch_and_xor(p, ...) GBX_SYNC(__sync_fetch_and_xor, p, __VA_ARGS__, 0)
#define __sync_fetch_and_nand(p, ...) GBX_SYNC(__sync_fetch_and_nand, p, __VA_ARGS__, 0)
#define __sync_add_and_fetch(p, ...) GBX_SYNC(__sync_add_and_fetch, p, __VA_ARGS__, 0)
#define __sync_sub_and_fetch(p, ...) GBX_SYNC(__sync_sub_and_fetch, p, __VA_ARGS__, 0)
#define __sync_or_and_fetch(p, ...) GBX_SYNC(__sync_or_and_fetch, p, __VA_ARGS__, 0)
#define __sync_and_and_fetch(p, ...) GBX_SYNC(__sync_and_and_fetch, p, __VA_ARGS__, 0)
#define __sync_xor_and_fetch(p, ...) GBX_SYNC(__sync_xor_and_fetch, p, __VA_ARGS__, 0)
#define __sync_nand_and_fetch(p, ...) GBX_SYNC(__sync_nand_and_fetch, p, __VA_ARGS__, 0)

#endif
