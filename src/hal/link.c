#include "hal/hal.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_FDS = 2 };

typedef union control_buffer {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int) * MAX_FDS)];
} control_buffer;

gbx_status gbx_link_send(int socket, const void *message, size_t bytes, const int *fds,
                         size_t fd_count) {
    if (fd_count > MAX_FDS)
        return gbx_fail(GBX_INTERNAL, "sending over the link: %zu descriptors, at most %d fit",
                        fd_count, (int)MAX_FDS);
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    control_buffer control;
    memset(&control, 0, sizeof control);
    if (fd_count > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(rights), fds, sizeof(int) * fd_count);
    }
    ssize_t sent = TEMP_FAILURE_RETRY(sendmsg(socket, &header, MSG_NOSIGNAL));
    if (sent >= 0 && (size_t)sent == bytes)
        return NULL;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
        return gbx_fail(GBX_DEVICE_LOST, "sending over the link: the other side has closed it");
    return gbx_fail(GBX_IO, "sending %zu bytes over the link: %s", bytes,
                    sent < 0 ? strerror(errno) : "only a part was sent");
}

static void close_all(const int *fds, size_t count) {
    for (size_t i = 0; i < count; ++i)
        close(fds[i]);
}

gbx_status gbx_link_receive(int socket, void *out_message, size_t bytes, int *out_fds,
                            size_t fd_count) {
    struct iovec part = {.iov_base = out_message, .iov_len = bytes};
    control_buffer control;
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    ssize_t received = TEMP_FAILURE_RETRY(recvmsg(socket, &header, MSG_CMSG_CLOEXEC));
    if (received < 0 && errno != ECONNRESET)
        return gbx_fail(GBX_IO, "receiving over the link: %s", strerror(errno));
    int fds[MAX_FDS];
    size_t count = 0;
    struct cmsghdr *c = received < 0 ? NULL : CMSG_FIRSTHDR(&header);
    for (; c; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(c), count * sizeof(int));
    }
    if (received <= 0) {
        close_all(fds, count); /* an empty message may still carry some */
        return gbx_fail(GBX_DEVICE_LOST, "receiving over the link: the other side has closed it");
    }
    bool is_cut = header.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
    if ((size_t)received != bytes || is_cut || count != fd_count) {
        close_all(fds, count);
        return gbx_fail(
            GBX_BAD_FORMAT,
            "receiving over the link: got %zd bytes and %zu descriptors%s, expected %zu and %zu",
            received, count, is_cut ? " and more" : "", bytes, fd_count);
    }
    if (fd_count > 0)
        memcpy(out_fds, fds, fd_count * sizeof(int));
    return NULL;
}
