#include "checks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"
#include "store/payload/payload.h"

enum { PAGE = 4096, MEMORY_BYTES = 4 << 20 };

static unsigned char *memory; /* shared, page-aligned */

static int enter(void **state) {
    (void)state;
    int fd = memfd_create("payload", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, MEMORY_BYTES) != 0)
        return -1;
    memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory != MAP_FAILED && scratch_enter(NULL) ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    munmap(memory, MEMORY_BYTES);
    return scratch_leave() ? 0 : -1;
}

/* The byte of the file at an offset, different from those nearby. */
static unsigned char pattern(uint64_t offset) {
    uint64_t z = (offset + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned char)(z >> 56 ^ z >> 31);
}

static void fill(unsigned char *bytes, uint64_t offset, size_t size) {
    for (size_t i = 0; i < size; ++i)
        bytes[i] = pattern(offset + i);
}

static int open_folder(const char *name) {
    mkdir(name, 0777);
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void open_payload(gbx_payload *payload, const char *name) {
    int folder_fd = open_folder(name);
    assert_ok(gbx_payload_open(payload, folder_fd, name));
    close(folder_fd);
}

static void write_pattern(gbx_payload *payload, uint64_t offset, size_t bytes) {
    fill(memory, offset, bytes);
    assert_ok(gbx_payload_write(payload, offset, memory, bytes));
    memset(memory, 0xee, bytes);
}

static void check_range(const unsigned char *file, uint64_t offset, size_t bytes, bool is_hole) {
    for (size_t i = 0; i < bytes; ++i)
        if (file[offset + i] != (is_hole ? 0 : pattern(offset + i)))
            fail_msg("byte %zu is 0x%02x", (size_t)offset + i, file[offset + i]);
}

/* Ranges of many sizes, one left out, the rest out of order. */
static void write_and_check(const char *folder) {
    static const size_t sizes[] = {PAGE, 5 * PAGE, 1 << 20, 3 * PAGE, 3 << 20, 7 * PAGE};
    static const size_t order[] = {4, 0, 5, 2, 1};
    gbx_payload payload;
    uint64_t offsets[6];
    open_payload(&payload, folder);
    for (size_t i = 0; i < 6; ++i)
        offsets[i] = gbx_payload_reserve(&payload, sizes[i] - i);
    for (size_t i = 0; i < 5; ++i)
        write_pattern(&payload, offsets[order[i]], sizes[order[i]]);
    assert_ok(gbx_payload_sync(&payload));
    gbx_payload_close(&payload);
    char path[64];
    snprintf(path, sizeof path, "%s/tensor_dump.bin", folder);
    size_t size;
    unsigned char *file = scratch_read(path, &size);
    assert_int_equal(size, offsets[5] + sizes[5]);
    for (size_t i = 0; i < 6; ++i)
        check_range(file, offsets[i], sizes[i], i == 3);
    free(file);
}

static void bytes_in_the_file_are_those_in_memory(void **state) {
    (void)state;
    write_and_check("plain");
}

static void ranges_are_pages_apart_from_each_other(void **state) {
    (void)state;
    gbx_payload payload;
    gbx_payload_init(&payload);
    assert_int_equal(gbx_payload_reserve(&payload, 1), 0);
    assert_int_equal(gbx_payload_reserve(&payload, PAGE), PAGE);
    assert_int_equal(gbx_payload_reserve(&payload, 0), 2 * PAGE);
    assert_int_equal(gbx_payload_reserve(&payload, PAGE + 1), 2 * PAGE);
    assert_int_equal(gbx_payload_reserve(&payload, 0), 4 * PAGE);
    /* Too large for a file: returns an offset that cannot be written, and reserves nothing. */
    assert_true(gbx_payload_reserve(&payload, INT64_MAX) > INT64_MAX);
    assert_true(gbx_payload_reserve(&payload, UINT64_MAX) > INT64_MAX);
    assert_int_equal(gbx_payload_reserve(&payload, 1), 4 * PAGE);
}

/* The system refuses direct writes from memory that is not aligned, as some file systems refuse
 * all. */
static void refused_direct_write_goes_through_the_cache(void **state) {
    (void)state;
    gbx_payload payload;
    open_payload(&payload, "refused");
    if (!payload.is_direct)
        skip();
    fill(memory + 1, 0, 3 * PAGE);
    assert_ok(gbx_payload_write(&payload, 0, memory + 1, 3 * PAGE));
    if (payload.is_direct)
        print_message("this file system accepts direct writes from any address\n");
    write_pattern(&payload, 3 * PAGE, 2 * PAGE);
    assert_ok(gbx_payload_sync(&payload));
    gbx_payload_close(&payload);
    size_t size;
    unsigned char *file = scratch_read("refused/tensor_dump.bin", &size);
    assert_int_equal(size, 5 * PAGE);
    check_range(file, 0, 5 * PAGE, false);
    free(file);
}

static void file_systems_in_memory_work(void **state) {
    (void)state;
    if (!scratch_mount("tmpfs", "tmpfs", "size=16m"))
        skip();
    write_and_check("tmpfs");
    scratch_unmount("tmpfs");
}

/* Refuses O_DIRECT when the file is opened. */
static void refused_direct_open_goes_through_the_cache(void **state) {
    (void)state;
    if (!scratch_mount("ramfs", "ramfs", NULL))
        skip();
    gbx_payload payload;
    open_payload(&payload, "ramfs");
    assert_false(payload.is_direct);
    gbx_payload_close(&payload);
    assert_int_equal(unlink("ramfs/tensor_dump.bin"), 0);
    write_and_check("ramfs");
    scratch_unmount("ramfs");
}

static void full_disk_is_reported_and_writes_go_on_later(void **state) {
    (void)state;
    if (!scratch_mount("tmpfs", "full", "size=1m"))
        skip();
    gbx_payload payload;
    static const char filler[600 << 10];
    scratch_write("full/filler", filler, sizeof filler);
    open_payload(&payload, "full");
    write_pattern(&payload, 0, 4 * PAGE);
    fill(memory, 4 * PAGE, 512 << 10);
    assert_fails(gbx_payload_write(&payload, 4 * PAGE, memory, 512 << 10), GBX_LOST,
                 "writing payload, 524288 bytes at offset 16384 of full/tensor_dump.bin",
                 "No space left on device", "free some space");
    assert_int_equal(unlink("full/filler"), 0);
    assert_ok(gbx_payload_write(&payload, 4 * PAGE, memory, 512 << 10));
    gbx_payload_close(&payload);
    size_t size;
    unsigned char *file = scratch_read("full/tensor_dump.bin", &size);
    assert_int_equal(size, 4 * PAGE + (512 << 10));
    check_range(file, 0, size, false);
    free(file);
    scratch_unmount("full");
}

/* The first call is cut short at the limit, the second one fails. */
static void write_that_is_cut_short_goes_on_until_it_fails(void **state) {
    (void)state;
    gbx_payload payload;
    open_payload(&payload, "limited");
    fill(memory, 0, 16 * PAGE);
    scratch_limit_files(5 * PAGE);
    gbx_status status = gbx_payload_write(&payload, 0, memory, 16 * PAGE);
    scratch_limit_files(UINT64_MAX);
    assert_fails(status, GBX_LOST, "65536 bytes at offset 0 of limited/tensor_dump.bin",
                 "File too large after 20480 bytes", "ulimit -f");
    size_t size;
    unsigned char *file = scratch_read("limited/tensor_dump.bin", &size);
    assert_int_equal(size, 5 * PAGE);
    check_range(file, 0, size, false);
    free(file);
    gbx_payload_close(&payload);
}

static void file_that_is_there_is_not_touched(void **state) {
    (void)state;
    int folder_fd = open_folder("taken");
    scratch_write("taken/tensor_dump.bin", "precious", 8);
    gbx_payload payload;
    assert_fails(gbx_payload_open(&payload, folder_fd, "taken"), GBX_INVALID_ARGUMENT,
                 "taken/tensor_dump.bin", "already holds a dump; choose another directory");
    gbx_payload_close(&payload);
    close(folder_fd);
    size_t size;
    unsigned char *file = scratch_read("taken/tensor_dump.bin", &size);
    assert_int_equal(size, 8);
    assert_memory_equal(file, "precious", 8);
    free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_in_the_file_are_those_in_memory),
        cmocka_unit_test(ranges_are_pages_apart_from_each_other),
        cmocka_unit_test(refused_direct_write_goes_through_the_cache),
        cmocka_unit_test(file_systems_in_memory_work),
        cmocka_unit_test(refused_direct_open_goes_through_the_cache),
        cmocka_unit_test(full_disk_is_reported_and_writes_go_on_later),
        cmocka_unit_test(write_that_is_cut_short_goes_on_until_it_fails),
        cmocka_unit_test(file_that_is_there_is_not_touched),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
