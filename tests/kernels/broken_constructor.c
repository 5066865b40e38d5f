/* Fails while it is loaded. */
#include <glassbox/kernel.h>

__attribute__((constructor)) static void fail(void) {
    *(volatile int *)0x30 = 1;
}

void kernel_entry(const uint64_t *args) {
    (void)args;
}
