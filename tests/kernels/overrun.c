/* A step of a chain (its output is 3 times its input, plus its number) that writes where it must
 * not. */
#include "overrun.h"

#include <glassbox/kernel.h>

static void overwrite(uint64_t first, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += 8)
        *(volatile uint64_t *)(uintptr_t)(first + i) = UINT64_C(0xdeadbeefdeadbeef);
}

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *from = gbx_arg_tensor(args, 0), *to = gbx_arg_tensor(args, 1);
    const uint32_t *in = (const uint32_t *)gbx_tensor_origin(from, 4);
    uint32_t *out = (uint32_t *)gbx_tensor_origin(to, 4);
    uint64_t way = args[3], count = way == OVERRUN_OUTPUT ? OVERRUN_ROW : 0;
    for (uint64_t i = 0; i < OVERRUN_ELEMENTS; ++i)
        out[i] = in[i] * 3 + (uint32_t)args[2];
    for (uint64_t i = OVERRUN_ELEMENTS; i < OVERRUN_ELEMENTS + count; ++i)
        out[i] = 0xffffffff;
    if (way == OVERRUN_DESCRIPTION)
        overwrite(args[1], sizeof(gbx_tensor));
    else if (way == OVERRUN_NEIGHBOURS)
        overwrite(args[1] - 2048, 4096);
}
