/* glassbox-chip: one simulated chip, started by a host that holds the other end of its link. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chip/device/device.h"

int main(void) {
    int type = 0;
    socklen_t length = sizeof type;
    if (getsockopt(GBX_LINK_SOCKET_FD, SOL_SOCKET, SO_TYPE, &type, &length) != 0) {
        fprintf(stderr,
                "glassbox-chip: descriptor %d is no link to a host; glassbox starts this "
                "program by itself\n",
                GBX_LINK_SOCKET_FD);
        return 2;
    }
    gbx_device_main(GBX_LINK_SOCKET_FD);
    /* Kernels that are still running, and destructors of theirs, do not hold the chip up. */
    _exit(0);
}
