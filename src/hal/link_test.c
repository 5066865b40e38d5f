#include "checks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/hal.h"

/* The pair as the host makes it, and two files to send. */
typedef struct ends {
    int host;
    int chip;
    int files[2];
} ends;

static ends open_ends(void) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    ends opened = {.host = pair[0], .chip = pair[1]};
    for (size_t i = 0; i < 2; ++i) {
        opened.files[i] =
            memfd_create("link_test", 0); /* not close-on-exec: the link must set it */
        assert_true(opened.files[i] >= 0);
    }
    return opened;
}

static void close_ends(ends *opened) {
    const int fds[] = {opened->host, opened->chip, opened->files[0], opened->files[1]};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; ++i)
        if (fds[i] >= 0)
            close(fds[i]);
}

static void assert_same_file(int sent, int received) {
    struct stat a;
    struct stat b;
    assert_true(sent != received);
    assert_int_equal(fstat(sent, &a), 0);
    assert_int_equal(fstat(received, &b), 0);
    assert_int_equal(a.st_dev, b.st_dev);
    assert_int_equal(a.st_ino, b.st_ino);
}

static void message_and_descriptors_travel(void **state) {
    (void)state;
    ends pair = open_ends();
    gbx_link_boot sent = {.magic = GBX_LINK_MAGIC, .gm_base = 0x7f0000000000, .log_level = 3};
    gbx_link_boot received;
    int fds[2] = {-1, -1};
    memset(&received, 0xab, sizeof received);
    assert_ok(gbx_link_send(pair.host, &sent, sizeof sent, pair.files, 2));
    assert_ok(gbx_link_receive(pair.chip, &received, sizeof received, fds, 2));
    assert_memory_equal(&received, &sent, sizeof sent);
    for (size_t i = 0; i < 2; ++i) {
        char text[8] = {0};
        assert_same_file(pair.files[i], fds[i]);
        assert_int_equal(pwrite(pair.files[i], i ? "second" : "first", 6, 0), 6);
        assert_int_equal(pread(fds[i], text, sizeof text, 0), 6);
        assert_string_equal(text, i ? "second" : "first");
        assert_true(fcntl(pair.files[i], F_GETFD) == 0);
        assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
        close(fds[i]);
    }
    close_ends(&pair);
}

static void messages_without_descriptors_keep_their_bounds_and_order(void **state) {
    (void)state;
    ends pair = open_ends();
    for (uint64_t i = 1; i <= 3; ++i) {
        gbx_launch_args sent = {.launch_id = i, .payload = i << 40, .timeout_ms = 7};
        assert_ok(gbx_link_send(pair.host, &sent, sizeof sent, NULL, 0));
    }
    for (uint64_t i = 1; i <= 3; ++i) {
        gbx_launch_args expected = {.launch_id = i, .payload = i << 40, .timeout_ms = 7};
        gbx_launch_args received;
        assert_ok(gbx_link_receive(pair.chip, &received, sizeof received, NULL, 0));
        assert_memory_equal(&received, &expected, sizeof expected);
    }
    close_ends(&pair);
}

static void the_answer_travels_back(void **state) {
    (void)state;
    ends pair = open_ends();
    gbx_link_ready sent = {.magic = GBX_LINK_MAGIC, .code = GBX_IO, .message = "no memory"};
    gbx_link_ready received;
    assert_ok(gbx_link_send(pair.chip, &sent, sizeof sent, NULL, 0));
    assert_ok(gbx_link_receive(pair.host, &received, sizeof received, NULL, 0));
    assert_memory_equal(&received, &sent, sizeof sent);
    close_ends(&pair);
}

static void wrong_size_is_a_bad_format_and_leaks_nothing(void **state) {
    (void)state;
    ends pair = open_ends();
    char sent[64] = {0};
    char received[41] = {0};
    const size_t open_before = count_open_files();
    static const struct {
        size_t bytes;
        const char *message;
    } cases[] = {{1, "got 1 bytes and 2 descriptors, expected 40 and 2"},
                 {39, "got 39 bytes and 2 descriptors, expected 40 and 2"},
                 {41, "got 40 bytes and 2 descriptors and more, expected 40 and 2"},
                 {64, "got 40 bytes and 2 descriptors and more, expected 40 and 2"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        int fds[2] = {-1, -1};
        received[40] = 'g';
        assert_ok(gbx_link_send(pair.host, sent, cases[i].bytes, pair.files, 2));
        assert_fails(gbx_link_receive(pair.chip, received, 40, fds, 2), GBX_BAD_FORMAT,
                     cases[i].message);
        assert_int_equal(received[40], 'g');
        assert_int_equal(fds[0], -1);
        assert_int_equal(fds[1], -1);
        assert_int_equal(count_open_files(), open_before);
    }
    close_ends(&pair);
}

static void wrong_number_of_descriptors_is_a_bad_format_and_leaks_nothing(void **state) {
    (void)state;
    ends pair = open_ends();
    static const struct {
        size_t sent;
        size_t expected;
        const char *message;
    } cases[] = {{0, 2, "got 8 bytes and 0 descriptors, expected 8 and 2"},
                 {1, 2, "got 8 bytes and 1 descriptors, expected 8 and 2"},
                 {1, 0, "got 8 bytes and 1 descriptors, expected 8 and 0"},
                 {2, 0, "got 8 bytes and 2 descriptors, expected 8 and 0"},
                 {2, 1, "got 8 bytes and 2 descriptors, expected 8 and 1"}};
    const size_t open_before = count_open_files();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        uint64_t message = i;
        int fds[2] = {-1, -1};
        assert_ok(gbx_link_send(pair.host, &message, 8, pair.files, cases[i].sent));
        assert_fails(gbx_link_receive(pair.chip, &message, 8, fds, cases[i].expected),
                     GBX_BAD_FORMAT, cases[i].message);
        assert_int_equal(fds[0], -1);
        assert_int_equal(count_open_files(), open_before);
    }
    close_ends(&pair);
}

/* More than gbx_link_send sends. */
static void send_three_fds(int socket, const void *message, size_t bytes, int fd) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control = {.bytes = {0}};
    const int fds[3] = {fd, fd, fd};
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(rights), fds, sizeof fds);
    assert_int_equal(sendmsg(socket, &header, 0), bytes);
}

/* The kernel hands over the two that fit; they need not be the two that are expected. */
static void more_descriptors_than_fit_are_a_bad_format(void **state) {
    (void)state;
    ends pair = open_ends();
    uint64_t message = 5;
    int fds[2] = {-1, -1};
    const size_t open_before = count_open_files();
    send_three_fds(pair.host, &message, sizeof message, pair.files[0]);
    assert_fails(gbx_link_receive(pair.chip, &message, sizeof message, fds, 2), GBX_BAD_FORMAT,
                 "got 8 bytes and 2 descriptors and more, expected 8 and 2");
    assert_int_equal(count_open_files(), open_before);
    close_ends(&pair);
}

static void a_bad_message_leaves_the_next_one_intact(void **state) {
    (void)state;
    ends pair = open_ends();
    const uint64_t sent[2] = {11, 22};
    uint64_t received = 0;
    assert_ok(gbx_link_send(pair.host, sent, sizeof sent, pair.files, 1));
    assert_ok(gbx_link_send(pair.host, &sent[1], sizeof sent[1], NULL, 0));
    assert_fails(gbx_link_receive(pair.chip, &received, sizeof received, NULL, 0), GBX_BAD_FORMAT,
                 "expected");
    assert_ok(gbx_link_receive(pair.chip, &received, sizeof received, NULL, 0));
    assert_int_equal(received, 22);
    close_ends(&pair);
}

static void assert_send_is_lost_quietly(int kind) {
    int pair[2];
    sigset_t pending;
    uint64_t message = 1;
    assert_int_equal(socketpair(AF_UNIX, kind, 0, pair), 0);
    close(pair[1]);
    for (size_t i = 0; i < 3; ++i)
        assert_fails(gbx_link_send(pair[0], &message, sizeof message, pair, i > 0), GBX_DEVICE_LOST,
                     "the other side has closed it");
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    close(pair[0]);
}

/*
 * A blocked SIGPIPE stays pending, where the test sees it, instead of ending the test. Linux raises
 * none for sequenced packets; a stream socket shows that the link asks for none.
 */
static void sending_to_a_closed_peer_is_a_lost_device_without_a_signal(void **state) {
    (void)state;
    sigset_t broken_pipe;
    sigset_t before;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &broken_pipe, &before), 0);
    assert_send_is_lost_quietly(SOCK_SEQPACKET);
    assert_send_is_lost_quietly(SOCK_STREAM);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static void receiving_from_a_closed_peer_is_a_lost_device(void **state) {
    (void)state;
    ends pair = open_ends();
    uint64_t message = 33;
    assert_ok(gbx_link_send(pair.host, &message, sizeof message, NULL, 0));
    close(pair.host);
    pair.host = -1;
    message = 0;
    assert_ok(gbx_link_receive(pair.chip, &message, sizeof message, NULL, 0)); /* what was sent */
    assert_int_equal(message, 33);
    for (size_t i = 0; i < 2; ++i)
        assert_fails(gbx_link_receive(pair.chip, &message, sizeof message, NULL, 0),
                     GBX_DEVICE_LOST, "closed");
    close_ends(&pair);
}

/* A peer that closed with a message unread resets the link instead of ending it. */
static void a_peer_that_closed_unread_is_a_lost_device(void **state) {
    (void)state;
    ends pair = open_ends();
    uint64_t message = 44;
    assert_ok(gbx_link_send(pair.host, &message, sizeof message, NULL, 0));
    close(pair.chip);
    pair.chip = -1;
    assert_fails(gbx_link_receive(pair.host, &message, sizeof message, NULL, 0), GBX_DEVICE_LOST,
                 "closed");
    assert_fails(gbx_link_send(pair.host, &message, sizeof message, NULL, 0), GBX_DEVICE_LOST,
                 "closed");
    close_ends(&pair);
}

static void a_descriptor_that_is_not_a_socket_is_refused_with_the_reason(void **state) {
    (void)state;
    ends pair = open_ends();
    uint64_t message = 0;
    assert_fails(gbx_link_send(pair.files[0], &message, sizeof message, NULL, 0), GBX_IO,
                 strerror(ENOTSOCK));
    assert_fails(gbx_link_receive(pair.files[0], &message, sizeof message, NULL, 0), GBX_IO,
                 strerror(ENOTSOCK));
    close_ends(&pair);
}

typedef struct interrupter {
    pthread_t receiver;
    int socket;
    uint64_t message;
} interrupter;

static void ignore_signal(int number) {
    (void)number;
}

/* The receiver cannot say that it sleeps, so signals are sent to it for a while. */
static void *interrupt_then_send(void *argument) {
    const interrupter *job = argument;
    for (int i = 0; i < 20; ++i) {
        usleep(2000);
        pthread_kill(job->receiver, SIGUSR1);
    }
    return gbx_link_send(job->socket, &job->message, sizeof job->message, NULL, 0);
}

static void a_signal_does_not_end_a_receive(void **state) {
    (void)state;
    ends pair = open_ends();
    struct sigaction before;
    struct sigaction action = {.sa_handler = ignore_signal}; /* without SA_RESTART */
    interrupter job = {.receiver = pthread_self(), .socket = pair.host, .message = 55};
    pthread_t thread;
    uint64_t received = 0;
    void *sent = NULL;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    assert_int_equal(pthread_create(&thread, NULL, interrupt_then_send, &job), 0);
    gbx_status status = gbx_link_receive(pair.chip, &received, sizeof received, NULL, 0);
    assert_int_equal(pthread_join(thread, &sent), 0);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    assert_ok(status);
    assert_ok(sent);
    assert_int_equal(received, 55);
    close_ends(&pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_and_descriptors_travel),
        cmocka_unit_test(messages_without_descriptors_keep_their_bounds_and_order),
        cmocka_unit_test(the_answer_travels_back),
        cmocka_unit_test(wrong_size_is_a_bad_format_and_leaks_nothing),
        cmocka_unit_test(wrong_number_of_descriptors_is_a_bad_format_and_leaks_nothing),
        cmocka_unit_test(more_descriptors_than_fit_are_a_bad_format),
        cmocka_unit_test(a_bad_message_leaves_the_next_one_intact),
        cmocka_unit_test(sending_to_a_closed_peer_is_a_lost_device_without_a_signal),
        cmocka_unit_test(receiving_from_a_closed_peer_is_a_lost_device),
        cmocka_unit_test(a_peer_that_closed_unread_is_a_lost_device),
        cmocka_unit_test(a_descriptor_that_is_not_a_socket_is_refused_with_the_reason),
        cmocka_unit_test(a_signal_does_not_end_a_receive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
