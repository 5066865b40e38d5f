/* glassbox-chip: one simulated chip, started by a host that holds the other end of its link. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/device.h"
#include "hal/hal.h"

/* No file of ours may take the number of a standard stream that the host closed: kernels print. */
static void fill_standard_streams(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

int main(void) {
    int type = 0;
    socklen_t length = sizeof type;
    if (getsockopt(GBX_LINK_SOCKET_FD, SOL_SOCKET, SO_TYPE, &type, &length) != 0) {
        fprintf(
            stderr,
            "glassbox-chip: descriptor %d is not a link to a host; glassbox starts this program "
            "itself\n",
            GBX_LINK_SOCKET_FD);
        return 2;
    }
    fcntl(GBX_LINK_SOCKET_FD, F_SETFD, FD_CLOEXEC);
    fill_standard_streams();
    /* Into a pipe, too: this process never ends by exit, and a kernel may crash after it printed.
     */
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    gbx_api_device_main(GBX_LINK_SOCKET_FD);
    /* Not exit: kernels that still run, or destructors of theirs, could delay it. */
    _exit(0);
}
