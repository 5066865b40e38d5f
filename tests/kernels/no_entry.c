/* Compiles and loads, and is no kernel. */
#include <glassbox/kernel.h>

int kernel_entrance(const uint64_t *args);

int kernel_entrance(const uint64_t *args) {
    return args[0] != 0;
}
