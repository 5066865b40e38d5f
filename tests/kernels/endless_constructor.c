/* Loading it never ends. */
#include <unistd.h>

#include <glassbox/kernel.h>

__attribute__((constructor)) static void wait_forever(void) {
    for (;;)
        pause();
}

void kernel_entry(const uint64_t *args) {
    (void)args;
}
