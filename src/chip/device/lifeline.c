#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "chip/device/device.h"

/* Ends this process and those that kernels started, which are in its group. */
static _Noreturn void end_all(void) {
    if (getpgrp() == getpid())
        kill(0, SIGKILL);
    _exit(0);
}

static void *lifeline_main(void *argument) {
    gbx_device *device = argument;
    pthread_setname_np(pthread_self(), "lifeline");
    struct pollfd watched[2] = {{.fd = device->link_socket, .events = POLLRDHUP},
                                {.fd = device->host_fd, .events = POLLIN}};
    for (;;) {
        if (gbx_poll(watched, 2, INT64_MAX) < 0)
            end_all();
        if (watched[0].revents & POLLNVAL)
            gbx_fault_record_link(device); /* a kernel has closed it */
        if (watched[0].revents || (watched[1].revents & POLLIN))
            end_all();
        if (watched[1].revents)
            watched[1].fd = -1; /* closed by a kernel: the link is still watched */
    }
}

gbx_status gbx_lifeline_start(gbx_device *device) {
    device->host_fd = (int)syscall(SYS_pidfd_open, getppid(), 0);
    /* If the host is gone already, this process has another parent. */
    if (device->host_fd < 0 || getppid() != (pid_t)device->boot.host_pid)
        return gbx_fail(GBX_DEVICE_LOST, "watching the host: it is gone");
    pthread_t thread;
    int error = pthread_create(&thread, NULL, lifeline_main, device);
    if (error)
        return gbx_fail(GBX_EXHAUSTED, "starting the thread that watches the host: %s",
                        strerror(error));
    pthread_detach(thread);
    return NULL;
}
