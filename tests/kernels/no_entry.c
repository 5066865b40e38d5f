/* Compiles and loads, but is not a kernel. */
#include <glassbox/kernel.h>

int kernel_entrance(const uint64_t *args);

int kernel_entrance(const uint64_t *args) {
    return args[0] != 0;
}
