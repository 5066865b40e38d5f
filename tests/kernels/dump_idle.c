/* Takes no arguments and does nothing. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    (void)args;
}
