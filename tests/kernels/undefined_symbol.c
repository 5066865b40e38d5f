/* Compiles, and cannot be loaded: nothing defines what it calls. */
#include <glassbox/kernel.h>

void function_that_nobody_defines(void);

void kernel_entry(const uint64_t *args) {
    (void)args;
    function_that_nobody_defines();
}
