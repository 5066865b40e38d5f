#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"

static int whole_ms(int64_t remaining_ns) {
    if (remaining_ns <= 0)
        return 0;
    int64_t ms = (remaining_ns - 1) / GBX_NS_PER_MS + 1;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

int gbx_poll(struct pollfd *watched, nfds_t count, int64_t timeout_ns) {
    int64_t start_ns = gbx_clock_ns();
    int ready;
    do
        ready = poll(watched, count, whole_ms(timeout_ns - (gbx_clock_ns() - start_ns)));
    while (ready < 0 && errno == EINTR);
    return ready;
}

int gbx_above_standard_streams(int fd) {
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error = errno;
    close(fd);
    errno = error;
    return moved;
}
