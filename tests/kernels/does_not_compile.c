#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *a = gbx_arg_tensor(args, 0);
    a->no_such_field = 1;
}
