/* A kernel that does nothing, whatever it gets. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    (void)args;
}
