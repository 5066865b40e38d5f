/* Crashes while it is loaded. */
#include <glassbox/kernel.h>

static volatile uintptr_t low_page; /* 0, hidden from the compiler */

__attribute__((constructor)) static void fail(void) {
    *(volatile int *)(low_page + 0x30) = 1;
}

void kernel_entry(const uint64_t *args) {
    (void)args;
}
