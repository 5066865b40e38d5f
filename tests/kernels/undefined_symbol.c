/* Compiles, but cannot be loaded: it calls an undefined function. */
#include <glassbox/kernel.h>

void function_without_definition(void);

void kernel_entry(const uint64_t *args) {
    (void)args;
    function_without_definition();
}
