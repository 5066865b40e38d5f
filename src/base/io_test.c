#include "checks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

enum { BYTES = 1 << 20 };

static unsigned char pattern(size_t i) {
    return (unsigned char)(i * 31 + (i >> 8));
}

static void ignore(int signal) {
    (void)signal;
}

/* Writes in small pieces, and interrupts the reader before each. */
typedef struct feeder {
    int fd;
    pthread_t reader;
} feeder;

static void *feed(void *argument) {
    const feeder *f = argument;
    for (size_t done = 0; done < BYTES;) {
        unsigned char piece[4096];
        for (size_t i = 0; i < sizeof piece; ++i)
            piece[i] = pattern(done + i);
        pthread_kill(f->reader, SIGUSR1);
        assert_int_equal(gbx_write_all(f->fd, piece, sizeof piece), 0);
        done += sizeof piece;
    }
    close(f->fd);
    return NULL;
}

static void a_pipe_is_read_completely_in_spite_of_signals(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = ignore}; /* no SA_RESTART */
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    feeder f = {.fd = ends[1], .reader = pthread_self()};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, feed, &f), 0);
    unsigned char *bytes = malloc(BYTES + 100);
    size_t size = 0;
    assert_int_equal(gbx_read_all(ends[0], bytes, BYTES + 100, &size), 0);
    pthread_join(thread, NULL);
    assert_int_equal(size, BYTES);
    for (size_t i = 0; i < BYTES; ++i)
        assert_int_equal(bytes[i], pattern(i));
    free(bytes);
    close(ends[0]);
}

static void offsets_are_kept(void **state) {
    (void)state;
    char path[] = "/tmp/glassbox-io-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    size_t count = 0;
    assert_int_equal(gbx_pwrite_all(fd, "world", 5, 6, &count), 0);
    assert_int_equal(count, 5);
    assert_int_equal(gbx_pwrite_all(fd, "hello ", 6, 0, &count), 0);
    char bytes[16] = {0};
    assert_int_equal(gbx_pread_all(fd, bytes, sizeof bytes, 0, &count), 0);
    assert_int_equal(count, 11);
    assert_memory_equal(bytes, "hello world", 11);
    assert_int_equal(gbx_pread_all(fd, bytes, 3, 7, &count), 0);
    assert_int_equal(count, 3);
    assert_memory_equal(bytes, "orl", 3);
    close(fd);
    char *text = NULL;
    assert_null(gbx_read_file(path, 11, &text, &count));
    assert_string_equal(text, "hello world");
    free(text);
    gbx_status status = gbx_read_file(path, 10, &text, &count);
    assert_int_equal(gbx_status_code(status), GBX_OUT_OF_RANGE);
    gbx_status_free(status);
    unlink(path);
}

static void failures_are_distinguished(void **state) {
    (void)state;
    size_t count = 0;
    char byte = 0;
    assert_int_equal(gbx_read_all(-1, &byte, 1, &count), EBADF);
    assert_int_equal(gbx_pread_all(-1, &byte, 1, 0, &count), EBADF);
    assert_int_equal(gbx_write_all(-1, &byte, 1), EBADF);
    assert_int_equal(gbx_pwrite_all(-1, &byte, 1, 0, &count), EBADF);
    char *text = NULL;
    gbx_status status = gbx_read_file("/tmp", 10, &text, &count);
    assert_int_equal(gbx_status_code(status), GBX_IO);
    assert_string_equal(gbx_status_message(status), "cannot read /tmp: it is a directory");
    gbx_status_free(status);
    status = gbx_read_file("/tmp/glassbox-io-test-nothing-here", 10, &text, &count);
    assert_int_equal(gbx_status_code(status), GBX_NOT_FOUND);
    gbx_status_free(status);
    char pipe_path[] = "/tmp/glassbox-io-test-pipe-XXXXXX";
    int fd = mkstemp(pipe_path);
    close(fd);
    unlink(pipe_path);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    status = gbx_read_file(pipe_path, 10, &text, &count);
    assert_int_equal(gbx_status_code(status), GBX_IO);
    gbx_status_free(status);
    unlink(pipe_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_is_read_completely_in_spite_of_signals),
        cmocka_unit_test(offsets_are_kept),
        cmocka_unit_test(failures_are_distinguished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
