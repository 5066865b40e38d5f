/*
 * What kernels call for each load and store: gcc the functions of its thread sanitizer, clang those
 * of its address sanitizer for kernels of an operating system. memcpy and its like are linked with
 * --wrap.
 */
#include <string.h>

#include "replay/sanitize/watch.h"

#define CALLED __attribute__((visibility("default")))
#define HERE __builtin_return_address(0)

/* --- gcc --- */

/* Compilers declare none of them. */
#define PLAIN(bytes)                                                                               \
    CALLED void __tsan_read##bytes(void *address);                                                 \
    CALLED void __tsan_write##bytes(void *address);                                                \
    void __tsan_read##bytes(void *address) {                                                       \
        gbx_watch_read(address, bytes, HERE);                                                      \
    }                                                                                              \
    void __tsan_write##bytes(void *address) {                                                      \
        gbx_watch_write(address, bytes, HERE);                                                     \
    }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

CALLED void __tsan_read_range(void *address, unsigned long bytes);
CALLED void __tsan_write_range(void *address, unsigned long bytes);
void __tsan_read_range(void *address, unsigned long bytes) {
    gbx_watch_read(address, bytes, HERE);
}
void __tsan_write_range(void *address, unsigned long bytes) {
    gbx_watch_write(address, bytes, HERE);
}

CALLED void __tsan_init(void);
CALLED void __tsan_func_entry(void *caller);
CALLED void __tsan_func_exit(void);
CALLED void __tsan_atomic_thread_fence(int order);
CALLED void __tsan_atomic_signal_fence(int order);
void __tsan_init(void) {}
void __tsan_func_entry(void *caller) {
    (void)caller;
}
void __tsan_func_exit(void) {}
void __tsan_atomic_thread_fence(int order) {
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int order) {
    (void)order;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* The strongest order is right for all. What is read and written at a time is seen as written. */
#define UPDATE(bits, name, operation)                                                              \
    CALLED uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *address,           \
                                                       uint##bits##_t value, int order);           \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *address,                  \
                                                uint##bits##_t value, int order) {                 \
        (void)order;                                                                               \
        gbx_watch_write(address, (bits) / 8, HERE);                                                \
        return operation(address, value, __ATOMIC_SEQ_CST);                                        \
    }
#define EXCHANGE(bits, name, is_weak)                                                              \
    CALLED int __tsan_atomic##bits##_##name(volatile uint##bits##_t *address,                      \
                                            uint##bits##_t *expected, uint##bits##_t wanted,       \
                                            int order, int failure_order);                         \
    int __tsan_atomic##bits##_##name(volatile uint##bits##_t *address, uint##bits##_t *expected,   \
                                     uint##bits##_t wanted, int order, int failure_order) {        \
        (void)order;                                                                               \
        (void)failure_order;                                                                       \
        gbx_watch_write(address, (bits) / 8, HERE);                                                \
        return __atomic_compare_exchange_n(address, expected, wanted, is_weak, __ATOMIC_SEQ_CST,   \
                                           __ATOMIC_SEQ_CST);                                      \
    }
#define ATOMIC(bits)                                                                               \
    CALLED uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *address,       \
                                                     int order);                                   \
    CALLED void __tsan_atomic##bits##_store(volatile uint##bits##_t *address,                      \
                                            uint##bits##_t value, int order);                      \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *address, int order) { \
        (void)order;                                                                               \
        gbx_watch_read(address, (bits) / 8, HERE);                                                 \
        return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                         \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *address, uint##bits##_t value,       \
                                     int order) {                                                  \
        (void)order;                                                                               \
        gbx_watch_write(address, (bits) / 8, HERE);                                                \
        __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                        \
    }                                                                                              \
    UPDATE(bits, exchange, __atomic_exchange_n)                                                    \
    UPDATE(bits, fetch_add, __atomic_fetch_add)                                                    \
    UPDATE(bits, fetch_sub, __atomic_fetch_sub)                                                    \
    UPDATE(bits, fetch_and, __atomic_fetch_and)                                                    \
    UPDATE(bits, fetch_or, __atomic_fetch_or)                                                      \
    UPDATE(bits, fetch_xor, __atomic_fetch_xor)                                                    \
    UPDATE(bits, fetch_nand, __atomic_fetch_nand)                                                  \
    EXCHANGE(bits, compare_exchange_strong, 0)                                                     \
    EXCHANGE(bits, compare_exchange_weak, 1)
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

/* --- clang --- */

#define SIZED(bytes)                                                                               \
    CALLED void __asan_load##bytes##_noabort(uintptr_t address);                                   \
    CALLED void __asan_store##bytes##_noabort(uintptr_t address);                                  \
    void __asan_load##bytes##_noabort(uintptr_t address) {                                         \
        gbx_watch_read((const void *)address, bytes, HERE);                                        \
    }                                                                                              \
    void __asan_store##bytes##_noabort(uintptr_t address) {                                        \
        gbx_watch_write((const void *)address, bytes, HERE);                                       \
    }
SIZED(1)
SIZED(2)
SIZED(4)
SIZED(8)
SIZED(16)

CALLED void __asan_loadN_noabort(uintptr_t address, size_t bytes);
CALLED void __asan_storeN_noabort(uintptr_t address, size_t bytes);
CALLED void __asan_handle_no_return(void);
void __asan_loadN_noabort(uintptr_t address, size_t bytes) {
    gbx_watch_read((const void *)address, bytes, HERE);
}
void __asan_storeN_noabort(uintptr_t address, size_t bytes) {
    gbx_watch_write((const void *)address, bytes, HERE);
}
void __asan_handle_no_return(void) {}

/* --- functions of the C library --- */

CALLED void *__wrap_memcpy(void *to, const void *from, size_t bytes);
CALLED void *__wrap_memmove(void *to, const void *from, size_t bytes);
CALLED void *__wrap_memset(void *to, int value, size_t bytes);
CALLED void *__asan_memcpy(void *to, const void *from, size_t bytes);
CALLED void *__asan_memmove(void *to, const void *from, size_t bytes);
CALLED void *__asan_memset(void *to, int value, size_t bytes);

static void *copy(void *to, const void *from, size_t bytes, const void *code) {
    gbx_watch_read(from, bytes, code);
    gbx_watch_write(to, bytes, code);
    return memmove(to, from, bytes);
}

void *__wrap_memcpy(void *to, const void *from, size_t bytes) {
    return copy(to, from, bytes, HERE);
}
void *__wrap_memmove(void *to, const void *from, size_t bytes) {
    return copy(to, from, bytes, HERE);
}
void *__wrap_memset(void *to, int value, size_t bytes) {
    gbx_watch_write(to, bytes, HERE);
    return memset(to, value, bytes);
}

/* Other versions of clang call these. */
void *__asan_memcpy(void *to, const void *from, size_t bytes) {
    return copy(to, from, bytes, HERE);
}
void *__asan_memmove(void *to, const void *from, size_t bytes) {
    return copy(to, from, bytes, HERE);
}
void *__asan_memset(void *to, int value, size_t bytes) {
    gbx_watch_write(to, bytes, HERE);
    return memset(to, value, bytes);
}
