/*
 * What the host shares with the chip, and what it does not. A child of this program follows a
 * device pointer: on a2a3sim it reads the value, on a5sim it faults, because the host has no
 * mapping there.
 */
#include "chip_support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { VALUE = 97 };

/* Follows the pointer in a child; returns its wait status. */
static int follow(uint64_t address) {
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would turn the signal into an exit */
        _exit(*(const volatile unsigned char *)(uintptr_t)address);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void test_host_follows_a_device_pointer(void **state) {
    const chip_variant *variant = *state;
    gbx_chip *chip = open_chip(variant, 1);
    unsigned char value = VALUE;
    uint64_t address = put(chip, &value, 1);
    void *pointer;
    int status = follow(address);
    if (strcmp(variant->platform, "a5sim") == 0) {
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSEGV);
        assert_int_equal(count_mappings_of("glassbox-gm"), 0);
        assert_fails(gbx_gm_map(chip, address, 1, &pointer), GBX_UNSUPPORTED, "a5sim", "cannot map",
                     "copy instead");
        assert_null(pointer);
    } else {
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), VALUE);
        assert_int_equal(count_mappings_of("glassbox-gm"), 1);
        assert_ok(gbx_gm_map(chip, address, 1, &pointer));
        assert_int_equal(*(unsigned char *)pointer, VALUE);
    }
    gbx_chip_close(chip);
    status = follow(address);
    assert_true(WIFSIGNALED(status));
}

/* The chip inherits its end of the link and no other open descriptor. */
static void test_chip_inherits_nothing(void **state) {
    int leaked = dup2(STDERR_FILENO, 200); /* without close-on-exec, as in careless hosts */
    gbx_chip *chip = open_chip(*state, 1);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/200", chip_pid(chip));
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof path, "/proc/%d/fd/3", chip_pid(chip));
    assert_int_equal(access(path, F_OK), 0);
    close(leaked);
    gbx_chip_close(chip);
}

/* The chip's kernels do not inherit blocked or ignored signals from the host. */
static void test_chip_starts_with_clean_signals(void **state) {
    sigset_t blocked;
    sigset_t previous;
    sigfillset(&blocked);
    sigprocmask(SIG_SETMASK, &blocked, &previous);
    gbx_chip *chip = open_chip(*state, 1);
    sigprocmask(SIG_SETMASK, &previous, NULL);
    char path[64];
    char line[256];
    unsigned long long mask = 1;
    snprintf(path, sizeof path, "/proc/%d/status", chip_pid(chip));
    FILE *status = fopen(path, "r");
    assert_non_null(status);
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "SigBlk: %llx", &mask) == 1)
            break;
    fclose(status);
    assert_int_equal(mask, 0);
    gbx_chip_close(chip);
}

/* A host without standard streams: printed text reaches neither the link nor the memory. */
static void test_host_without_standard_streams(void **state) {
    int saved[3];
    for (int fd = 0; fd < 3; ++fd) {
        saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
        close(fd);
    }
    gbx_chip_config config = {.platform = ((const chip_variant *)*state)->platform,
                              .gm_bytes = 1 << 20};
    gbx_chip *chip;
    uint64_t address = 0;
    char text[8] = "";
    gbx_status status = gbx_chip_open(&config, &chip);
    bool are_free = fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 && fcntl(2, F_GETFD) < 0;
    if (!status)
        status = gbx_gm_alloc(chip, sizeof text, &address);
    if (!status)
        status = gbx_gm_copy_in(chip, address, "streams", 8);
    if (!status)
        status = gbx_gm_copy_out(chip, text, address, 8);
    gbx_chip_close(chip);
    for (int fd = 0; fd < 3; ++fd) {
        dup2(saved[fd], fd);
        close(saved[fd]);
    }
    assert_ok(status);
    assert_true(are_free);
    assert_string_equal(text, "streams");
}

/* How long it takes to close a chip while a forked process holds a copy of the link. */
static int64_t close_beside_a_fork(const chip_variant *variant) {
    gbx_chip *chip = open_chip(variant, 1);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    int64_t start_ns = gbx_clock_ns();
    gbx_chip_close(chip);
    int64_t took_ns = gbx_clock_ns() - start_ns;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return took_ns;
}

/* A host that has forked still ends its chip when it closes it, and when it dies. Killing a chip
 * always takes five seconds; a chip that ends by itself takes as long only on a busy machine. */
static void test_fork_does_not_keep_a_chip(void **state) {
    bool is_quick = false;
    for (int i = 0; i < 20 && !is_quick; ++i)
        is_quick = close_beside_a_fork(*state) < 5 * GBX_NS_PER_SECOND;
    assert_true(is_quick);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_follows_a_device_pointer),
        cmocka_unit_test(test_chip_inherits_nothing),
        cmocka_unit_test(test_chip_starts_with_clean_signals),
        cmocka_unit_test(test_host_without_standard_streams),
        cmocka_unit_test(test_fork_does_not_keep_a_chip),
    };
    return RUN_OVER_PROCESS_VARIANTS(tests);
}
