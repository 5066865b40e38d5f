/* x: in, slot 0; y: out, slot 1; z: inout, slot 2; way, number: scalars, slots 3 and 4. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <glassbox/kernel.h>

#include "replay_ways.h"

static int32_t *element(const gbx_tensor *tensor, int64_t row, int64_t column) {
    int32_t *origin = gbx_tensor_origin(tensor, sizeof *origin);
    return origin + row * tensor->strides[0] + column * tensor->strides[1];
}

static void affine(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0);
    const gbx_tensor *y = gbx_arg_tensor(args, 1);
    const gbx_tensor *z = gbx_arg_tensor(args, 2);
    for (int64_t i = gbx_local(args)->block_idx; i < x->shape[0]; i += gbx_local(args)->block_num)
        for (int64_t j = 0; j < x->shape[1]; ++j) {
            int32_t value = *element(x, i, j);
            *element(z, i, j) += value;
            *element(y, i, j) = 2 * value + gbx_arg_i32(args, 4);
        }
}

static void save_contexts(const uint64_t *args) {
    const gbx_local_context *local = gbx_local(args);
    uint32_t *row = (uint32_t *)element(gbx_arg_tensor(args, 1), local->block_idx, 0);
    row += 6 * local->subtask;
    row[0] = local->block_idx;
    row[1] = local->block_num;
    row[2] = local->subtask;
    row[3] = local->core_id;
    row[4] = gbx_global(args)->blocks;
    row[5] =
        (uint32_t)(gbx_global(args)->gm_bytes >> 20) ^ (uint32_t)(gbx_global(args)->gm_base >> 32);
}

/* z[0] counts arrivals: no dispatch continues before all `number` of them have arrived. */
static void meet(const uint64_t *args) {
    const gbx_local_context *local = gbx_local(args);
    uint32_t *arrivals = (uint32_t *)element(gbx_arg_tensor(args, 2), 0, 0);
    gbx_flag_add(arrivals, 1);
    while (gbx_arg_u32(args, 3) == WAY_MEET_SPIN &&
           __atomic_load_n(arrivals, __ATOMIC_ACQUIRE) < gbx_arg_u32(args, 4))
        ;
    gbx_flag_wait(arrivals, gbx_arg_u32(args, 4));
    *element(gbx_arg_tensor(args, 1), local->block_idx, local->subtask) =
        (int32_t)(100 * local->block_idx + local->subtask + 7);
}

static unsigned half(const unsigned char *bytes, int64_t at) {
    return at % 2 ? bytes[at / 2] >> 4 : bytes[at / 2] & 15u;
}

static void halves(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0);
    const gbx_tensor *y = gbx_arg_tensor(args, 1);
    const unsigned char *from = (const unsigned char *)(uintptr_t)x->data;
    unsigned char *to = (unsigned char *)(uintptr_t)y->data;
    for (int64_t i = 0; i < x->shape[0]; ++i)
        for (int64_t j = 0; j < x->shape[1]; ++j) {
            unsigned value = half(from, x->start_offset + i * x->strides[0] + j * x->strides[1]);
            int64_t at = y->start_offset + i * y->strides[0] + j * y->strides[1];
            unsigned char kept = (unsigned char)(to[at / 2] & (at % 2 ? 0x0fu : 0xf0u));
            value = (value + gbx_arg_u32(args, 4)) & 15u;
            to[at / 2] = (unsigned char)(kept | value << (at % 2 ? 4 : 0));
        }
}

__attribute__((noinline)) static int overflow(volatile char *above) {
    volatile char here[4096];
    here[0] = above[0];
    return above[0] == 77 ? 0 : overflow(here) + here[0];
}

static void *crash(void *unused) {
    (void)unused;
    abort();
}

static void start_crash(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, crash, NULL) == 0)
        pthread_join(thread, NULL);
}

static void fail(const uint64_t *args) {
    volatile int zero = 0;
    switch (gbx_arg_u32(args, 3)) {
    case WAY_STORE:
        *(volatile int *)(uintptr_t)gbx_arg_u64(args, 4) = 1;
        break;
    case WAY_HANG:
        for (volatile int go = 1; go;)
            sched_yield();
        break;
    case WAY_SPIN:
        for (volatile int go = 1; go;)
            ;
        break;
    case WAY_EXIT:
        exit(gbx_arg_i32(args, 4));
    case WAY_END:
        _exit(5);
    case WAY_ABORT:
        abort();
    case WAY_OVERFLOW:
        zero = overflow((volatile char *)&zero);
        break;
    case WAY_THREAD_END:
        pthread_exit(NULL);
    case WAY_DIVIDE:
        zero = gbx_arg_i32(args, 3) / zero;
        break;
    case WAY_OTHER_THREAD:
        start_crash();
        break;
    default:
        break;
    }
}

/* Of several dispatches, one fails and the others wait forever. */
static void fail_on_one(const uint64_t *args) {
    const gbx_local_context *local = gbx_local(args);
    if (local->block_num == 1 || (local->block_idx == 1 && local->subtask == GBX_SUBTASK_AIV0))
        fail(args);
    else if (gbx_arg_u32(args, 3) != WAY_HANG && gbx_arg_u32(args, 3) != WAY_SPIN)
        for (;;)
            sched_yield();
}

/* y is an output: its initial value is undefined. */
static void add(const uint64_t *args) {
    int32_t before = *element(gbx_arg_tensor(args, 1), 0, 0);
    affine(args);
    *element(gbx_arg_tensor(args, 1), 0, 0) += before;
}

void kernel_entry(const uint64_t *args) {
    switch (gbx_arg_u32(args, 3)) {
    case WAY_AFFINE:
        affine(args);
        break;
    case WAY_NOTHING:
        break;
    case WAY_REPORT:
        save_contexts(args);
        break;
    case WAY_MEET:
    case WAY_MEET_SPIN:
        meet(args);
        break;
    case WAY_HALVES:
        halves(args);
        break;
    case WAY_STRAY:
        affine(args);
        *(volatile unsigned char *)(uintptr_t)gbx_arg_u64(args, 4) ^= 0xff;
        break;
    case WAY_INPUT:
        affine(args);
        *element(gbx_arg_tensor(args, 0), 0, 0) ^= 0x01010101;
        break;
    case WAY_DESCRIPTOR:
        affine(args);
        memset((void *)(uintptr_t)args[0], 0xff, sizeof(gbx_tensor));
        break;
    case WAY_PRINT:
        affine(args);
        puts("a kernel prints");
        break;
    case WAY_ADD:
        add(args);
        break;
    case WAY_BESIDE:
        affine(args);
        ++*((unsigned char *)element(gbx_arg_tensor(args, 1), 0, 0) - 1);
        break;
    case WAY_LOAD:
        affine(args);
        (void)*(volatile unsigned char *)(uintptr_t)gbx_arg_u64(args, 4);
        break;
    case WAY_SIGN:
        if ((*element(gbx_arg_tensor(args, 1), 0, 0) < 0) == gbx_arg_i32(args, 4))
            abort();
        affine(args);
        break;
    case WAY_END:
        meet(args);
        fail_on_one(args);
        break;
    default:
        fail_on_one(args);
    }
}
