/* A kernel that does nothing; or that sleeps as many nanoseconds as the scalar after its only
 * tensor says. */
#include <time.h>

#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
#ifdef TAKES_TIME
    struct timespec duration = {.tv_nsec = (long)args[1]};
    nanosleep(&duration, NULL);
#else
    (void)args;
#endif
}
