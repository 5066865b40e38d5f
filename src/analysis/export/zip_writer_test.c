#include "checks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/export/internal.h"

/* --- archives, read from the end by the rules of the format only --- */

typedef struct archive {
    unsigned char *bytes;
    size_t size;
} archive;

typedef struct directory {
    uint64_t start;
    uint64_t bytes;
    uint64_t count;
    size_t end; /* offset of the end records of the directory */
    bool has_long_end;
} directory;

static uint64_t number(const archive *from, size_t at, size_t bytes) {
    uint64_t value = 0;
    assert_true(at + bytes <= from->size);
    for (size_t i = 0; i < bytes; ++i)
        value |= (uint64_t)from->bytes[at + i] << 8 * i;
    return value;
}

static uint32_t checksum_of(const unsigned char *bytes, size_t size) {
    uint32_t rest = 0xffffffff;
    for (size_t i = 0; i < size; ++i) {
        rest ^= bytes[i];
        for (int bit = 0; bit < 8; ++bit)
            rest = rest >> 1 ^ (rest & 1 ? 0xedb88320 : 0);
    }
    return ~rest;
}

static void read_long_end(const archive *from, size_t end, directory *out) {
    size_t locator = end - 20;
    assert_int_equal(number(from, locator, 4), 0x07064b50);
    assert_int_equal(number(from, locator + 4, 4), 0);
    assert_int_equal(number(from, locator + 16, 4), 1);
    size_t at = (size_t)number(from, locator + 8, 8);
    assert_int_equal(at, locator - 56);
    assert_int_equal(number(from, at, 4), 0x06064b50);
    assert_int_equal(number(from, at + 4, 8), 44);
    assert_int_equal(number(from, at + 12, 2), 3 << 8 | 45);
    assert_int_equal(number(from, at + 14, 2), 45);
    assert_int_equal(number(from, at + 16, 8), 0);
    assert_int_equal(number(from, at + 24, 8), number(from, at + 32, 8));
    *out = (directory){.count = number(from, at + 24, 8),
                       .bytes = number(from, at + 40, 8),
                       .start = number(from, at + 48, 8),
                       .end = at,
                       .has_long_end = true};
}

/* The short end holds a number, or refers to the long end exactly when the number needs it. */
static directory read_end(const archive *from, gbx_zip_limits limits) {
    size_t end = from->size - 22;
    assert_int_equal(number(from, end, 4), 0x06054b50);
    assert_int_equal(number(from, end + 4, 4), 0);
    assert_int_equal(number(from, end + 8, 2), number(from, end + 10, 2));
    assert_int_equal(number(from, end + 20, 2), 0);
    directory shown = {.count = number(from, end + 8, 2),
                       .bytes = number(from, end + 12, 4),
                       .start = number(from, end + 16, 4),
                       .end = end};
    if (shown.count != 0xffff && shown.bytes != 0xffffffff && shown.start != 0xffffffff)
        return shown;
    directory whole;
    read_long_end(from, end, &whole);
    assert_int_equal(shown.count, whole.count >= limits.members ? 0xffff : whole.count);
    assert_int_equal(shown.bytes, whole.bytes >= limits.bytes ? 0xffffffff : whole.bytes);
    assert_int_equal(shown.start, whole.start >= limits.bytes ? 0xffffffff : whole.start);
    return whole;
}

/* The extra field at `at`, of `size`: the 64-bit numbers that do not fit elsewhere, in the order of
 * the format. */
static void read_extra(const archive *from, size_t at, size_t size, uint64_t **numbers,
                       size_t count) {
    size_t next = at + 4;
    for (size_t i = 0; i < count; ++i) {
        if (*numbers[i] != 0xffffffff)
            continue;
        *numbers[i] = number(from, next, 8);
        next += 8;
    }
    assert_int_equal(size, next == at + 4 ? 0 : next - at);
    if (size == 0)
        return;
    assert_int_equal(number(from, at, 2), 1);
    assert_int_equal(number(from, at + 2, 2), size - 4);
}

/* A member's header at `at`; returns where the member ends. From the needed version to the lengths,
 * the header equals its directory entry. */
static size_t check_member(const archive *from, size_t at, size_t entry, uint64_t bytes) {
    uint64_t packed = number(from, at + 18, 4);
    uint64_t unpacked = number(from, at + 22, 4);
    size_t name_bytes = (size_t)number(from, at + 26, 2);
    size_t extra_bytes = (size_t)number(from, at + 28, 2);
    assert_int_equal(number(from, at, 4), 0x04034b50);
    assert_memory_equal(from->bytes + at + 6, from->bytes + entry + 8, 22);
    assert_memory_equal(from->bytes + at + 30, from->bytes + entry + 46, name_bytes);
    read_extra(from, at + 30 + name_bytes, extra_bytes, (uint64_t *[]){&unpacked, &packed}, 2);
    assert_int_equal(packed, bytes);
    assert_int_equal(unpacked, bytes);
    assert_int_equal(number(from, at + 4, 2), extra_bytes ? 45 : 10);
    size_t data = at + 30 + name_bytes + extra_bytes;
    assert_int_equal(number(from, at + 14, 4), checksum_of(from->bytes + data, (size_t)bytes));
    return data + (size_t)bytes;
}

/* --- archives, written --- */

/* The form of members: a few sizes, and bytes that differ from member to member. */
typedef struct shape {
    size_t count;
    size_t bytes;  /* of member 0 */
    size_t growth; /* from member to member, until it starts over */
    size_t sizes;
} shape;

static size_t bytes_of(const shape *of, size_t index) {
    return of->bytes + of->growth * (index % of->sizes);
}

static unsigned char byte_of(size_t index, size_t at) {
    return (unsigned char)(index * 31 + at * 7 + (at >> 8) + 1);
}

static archive mapped(int fd) {
    off_t size = lseek(fd, 0, SEEK_END);
    assert_true(size > 0);
    archive whole = {.size = (size_t)size};
    whole.bytes = mmap(NULL, whole.size, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(whole.bytes, MAP_FAILED);
    close(fd);
    return whole;
}

static void write_member(gbx_zip_writer *zip, const shape *of, size_t index) {
    char name[32];
    size_t size = bytes_of(of, index);
    unsigned char *bytes = malloc(size + 1);
    assert_non_null(bytes);
    for (size_t at = 0; at < size; ++at)
        bytes[at] = byte_of(index, at);
    snprintf(name, sizeof name, "member_%zu.npy", index);
    assert_ok(gbx_zip_writer_begin(zip, name, size));
    size_t half = size / 2;
    assert_int_equal(gbx_zip_writer_write(zip, bytes, half), 0);
    assert_int_equal(gbx_zip_writer_write(zip, bytes + half, size - half), 0);
    assert_ok(gbx_zip_writer_end(zip, checksum_of(bytes, size)));
    free(bytes);
}

static archive written(const shape *of, gbx_zip_limits limits) {
    uint64_t bytes;
    int fd = memfd_create("zip", MFD_CLOEXEC);
    assert_true(fd >= 0);
    gbx_zip_writer *zip = gbx_zip_writer_create(fd, "all.npz", NULL, limits);
    assert_non_null(zip);
    for (size_t i = 0; i < of->count; ++i)
        write_member(zip, of, i);
    assert_ok(gbx_zip_writer_finish(zip, &bytes));
    gbx_zip_writer_destroy(zip);
    archive whole = mapped(fd);
    assert_int_equal(bytes, whole.size);
    return whole;
}

/* The directory entry at *at, which it advances, of a member that begins at `offset`. */
static size_t check_entry(const archive *from, const shape *of, size_t index, size_t offset,
                          gbx_zip_limits limits, size_t *at) {
    char name[32];
    size_t entry = *at;
    size_t name_bytes = (size_t)snprintf(name, sizeof name, "member_%zu.npy", index);
    uint64_t bytes = bytes_of(of, index);
    uint64_t packed = number(from, entry + 20, 4);
    uint64_t unpacked = number(from, entry + 24, 4);
    uint64_t start = number(from, entry + 42, 4);
    size_t extra_bytes = (size_t)number(from, entry + 30, 2);
    assert_int_equal(number(from, entry, 4), 0x02014b50);
    assert_int_equal(packed == 0xffffffff, bytes >= limits.bytes);
    assert_int_equal(unpacked == 0xffffffff, bytes >= limits.bytes);
    assert_int_equal(start == 0xffffffff, offset >= limits.bytes);
    assert_int_equal(number(from, entry + 28, 2), name_bytes);
    assert_memory_equal(from->bytes + entry + 46, name, name_bytes);
    read_extra(from, entry + 46 + name_bytes, extra_bytes,
               (uint64_t *[]){&unpacked, &packed, &start}, 3);
    assert_int_equal(start, offset);
    assert_int_equal(number(from, entry + 6, 2), extra_bytes ? 45 : 10);
    *at = entry + 46 + name_bytes + extra_bytes;
    return entry;
}

/* Every byte of the archive belongs to a correct record or to a member. */
static directory check_archive(const archive *from, const shape *of, gbx_zip_limits limits) {
    directory found = read_end(from, limits);
    size_t offset = 0;
    size_t at = (size_t)found.start;
    assert_int_equal(found.count, of->count);
    for (size_t i = 0; i < of->count; ++i) {
        size_t entry = check_entry(from, of, i, offset, limits, &at);
        size_t end = check_member(from, offset, entry, bytes_of(of, i));
        size_t data = end - bytes_of(of, i);
        for (size_t byte = data; byte < end; ++byte)
            if (from->bytes[byte] != byte_of(i, byte - data))
                fail_msg("byte %zu of member %zu", byte - data, i);
        offset = end;
    }
    assert_int_equal(offset, found.start);
    assert_int_equal(at, found.start + found.bytes);
    assert_int_equal(at, found.end);
    return found;
}

static bool has_long_end(shape of, gbx_zip_limits limits) {
    archive whole = written(&of, limits);
    directory found = check_archive(&whole, &of, limits);
    munmap(whole.bytes, whole.size);
    return found.has_long_end;
}

/* --- tests --- */

typedef struct text_member {
    const char *name;
    const char *text;
} text_member;

static void check_literal(const text_member *members, size_t count, gbx_zip_limits limits,
                          const char *expected, size_t size) {
    uint64_t archive_bytes;
    int fd = memfd_create("zip", MFD_CLOEXEC);
    gbx_zip_writer *zip = gbx_zip_writer_create(fd, "all.npz", NULL, limits);
    assert_non_null(zip);
    for (size_t i = 0; i < count; ++i) {
        size_t bytes = strlen(members[i].text);
        assert_ok(gbx_zip_writer_begin(zip, members[i].name, bytes));
        assert_int_equal(gbx_zip_writer_write(zip, members[i].text, bytes), 0);
        assert_ok(
            gbx_zip_writer_end(zip, checksum_of((const unsigned char *)members[i].text, bytes)));
    }
    assert_ok(gbx_zip_writer_finish(zip, &archive_bytes));
    gbx_zip_writer_destroy(zip);
    archive whole = mapped(fd);
    assert_int_equal(archive_bytes, size);
    assert_int_equal(whole.size, size);
    assert_memory_equal(whole.bytes, expected, size);
    munmap(whole.bytes, whole.size);
}

static void small_archives_are_these_bytes(void **state) {
    (void)state;
    static const text_member members[] = {{"a.npy", "123456789"}, {"\xc3\xbc", ""}};
    static const char none[] = "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    static const char two[] =
        "PK\3\4\x0a\0\0\0\0\0\0\0\x21\0\x26\x39\xf4\xcb\x09\0\0\0\x09\0\0\0\5\0\0\0"
        "a.npy123456789"
        "PK\3\4\x0a\0\0\x08\0\0\0\0\x21\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\xc3\xbc"
        "PK\1\2\x2d\3\x0a\0\0\0\0\0\0\0\x21\0\x26\x39\xf4\xcb\x09\0\0\0\x09\0\0\0\5\0\0\0"
        "\0\0\0\0\0\0\0\0\xa4\x81\0\0\0\0a.npy"
        "PK\1\2\x2d\3\x0a\0\0\x08\0\0\0\0\x21\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0"
        "\0\0\0\0\0\0\0\0\xa4\x81\x2c\0\0\0\xc3\xbc"
        "PK\5\6\0\0\0\0\2\0\2\0\x63\0\0\0\x4c\0\0\0\0\0";
    check_literal(members, 0, GBX_ZIP_LIMITS, none, sizeof none - 1);
    check_literal(members, 2, GBX_ZIP_LIMITS, two, sizeof two - 1);
}

static void long_forms_are_these_bytes(void **state) {
    (void)state;
    static const text_member members[] = {{"b", "wxyz"}, {"c", ""}};
    static const char expected[] =
        "PK\3\4\x2d\0\0\0\0\0\0\0\x21\0\x4c\x24\x63\xc3\xff\xff\xff\xff\xff\xff\xff\xff"
        "\1\0\x14\0b\1\0\x10\0\4\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0wxyz"
        "PK\3\4\x0a\0\0\0\0\0\0\0\x21\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0c"
        "PK\1\2\x2d\3\x2d\0\0\0\0\0\0\0\x21\0\x4c\x24\x63\xc3\xff\xff\xff\xff\xff\xff\xff\xff"
        "\1\0\x14\0\0\0\0\0\0\0\0\0\xa4\x81\0\0\0\0b"
        "\1\0\x10\0\4\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
        "PK\1\2\x2d\3\x2d\0\0\0\0\0\0\0\x21\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "\1\0\x0c\0\0\0\0\0\0\0\0\0\xa4\x81\xff\xff\xff\xff"
        "c\1\0\x08\0\x37\0\0\0\0\0\0\0"
        "PK\6\6\x2c\0\0\0\0\0\0\0\x2d\3\x2d\0\0\0\0\0\0\0\0\0"
        "\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\x7e\0\0\0\0\0\0\0\x56\0\0\0\0\0\0\0"
        "PK\6\7\0\0\0\0\xd4\0\0\0\0\0\0\0\1\0\0\0"
        "PK\5\6\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0";
    check_literal(members, 2, (gbx_zip_limits){2, 4}, expected, sizeof expected - 1);
}

/* A 16-bit count cannot be 65535: that means the count is elsewhere. */
static void many_members_are_counted_in_64_bits(void **state) {
    (void)state;
    assert_false(has_long_end((shape){65534, 1, 1, 3}, GBX_ZIP_LIMITS));
    assert_true(has_long_end((shape){65535, 1, 1, 3}, GBX_ZIP_LIMITS));
    assert_true(has_long_end((shape){65536, 1, 1, 3}, GBX_ZIP_LIMITS));
    assert_true(has_long_end((shape){70000, 0, 66, 3}, GBX_ZIP_LIMITS));
}

/* Members below, at and above the limit, and the directory beyond it. */
static void large_sizes_and_offsets_have_64_bits(void **state) {
    (void)state;
    assert_false(has_long_end((shape){10, 98, 1, 5}, (gbx_zip_limits){11, 10000}));
    assert_true(has_long_end((shape){10, 98, 1, 5}, (gbx_zip_limits){10, 10000}));
    assert_true(has_long_end((shape){10, 98, 1, 5}, (gbx_zip_limits){11, 100}));
    assert_true(has_long_end((shape){300, 0, 1000, 9}, (gbx_zip_limits){0xffff, 4000}));
    for (uint64_t limit = 1; limit < 200; ++limit)
        has_long_end((shape){3, 20, 30, 3}, (gbx_zip_limits){0xffff, limit});
}

/* Sizes around that of the buffer: headers are written just before, or just after, their checksum
 * is known. */
static void members_of_all_sizes_are_complete(void **state) {
    (void)state;
    const size_t window = 1 << 18;
    assert_false(has_long_end((shape){5, window - 100, 50, 5}, GBX_ZIP_LIMITS));
    assert_false(has_long_end((shape){6, 0, window, 3}, GBX_ZIP_LIMITS));
    assert_false(has_long_end((shape){40, window / 16 - 60, 1, 40}, GBX_ZIP_LIMITS));
    assert_false(has_long_end((shape){3, 2 * window + 1, 2 * window - 1, 2}, GBX_ZIP_LIMITS));
}

static void a_member_of_another_size_is_refused(void **state) {
    (void)state;
    for (size_t size = 0; size < 5; ++size) {
        int fd = memfd_create("zip", MFD_CLOEXEC);
        gbx_zip_writer *zip = gbx_zip_writer_create(fd, "all.npz", NULL, GBX_ZIP_LIMITS);
        assert_ok(gbx_zip_writer_begin(zip, "a", 2));
        assert_int_equal(gbx_zip_writer_write(zip, "1234", size), 0);
        if (size == 2)
            assert_ok(gbx_zip_writer_end(zip, 0));
        else
            assert_fails(gbx_zip_writer_end(zip, 0), GBX_INTERNAL, "all.npz",
                         "bytes instead of 2;");
        gbx_zip_writer_destroy(zip);
        close(fd);
    }
}

static void a_name_that_is_too_long_is_refused(void **state) {
    (void)state;
    static char name[65537];
    int fd = memfd_create("zip", MFD_CLOEXEC);
    gbx_zip_writer *zip = gbx_zip_writer_create(fd, "all.npz", NULL, GBX_ZIP_LIMITS);
    memset(name, 'x', 65536);
    assert_fails(gbx_zip_writer_begin(zip, name, 0), GBX_UNSUPPORTED, "all.npz", "65536", "65535");
    name[65535] = '\0';
    assert_ok(gbx_zip_writer_begin(zip, name, 0));
    gbx_zip_writer_destroy(zip);
    close(fd);
}

/* Whichever write fails, the first one or that of the directory, it is reported. */
static void failed_writes_are_reported(void **state) {
    (void)state;
    enum { BYTES = 1 << 20 };
    uint64_t written_bytes;
    unsigned char *bytes = calloc(1, BYTES);
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    gbx_zip_writer *zip = gbx_zip_writer_create(fd, "all.npz", NULL, GBX_ZIP_LIMITS);
    assert_ok(gbx_zip_writer_begin(zip, "small", 0));
    assert_ok(gbx_zip_writer_end(zip, 0));
    assert_fails(gbx_zip_writer_finish(zip, &written_bytes), GBX_LOST, "cannot write all.npz",
                 "No space");
    gbx_zip_writer_destroy(zip);

    zip = gbx_zip_writer_create(fd, "all.npz", NULL, GBX_ZIP_LIMITS);
    assert_ok(gbx_zip_writer_begin(zip, "large", BYTES));
    assert_int_equal(gbx_zip_writer_write(zip, bytes, BYTES), ENOSPC);
    assert_fails(gbx_zip_writer_end(zip, 0), GBX_LOST, "cannot write all.npz", "No space");
    assert_fails(gbx_zip_writer_begin(zip, "next", 0), GBX_LOST, "No space");
    assert_fails(gbx_zip_writer_finish(zip, &written_bytes), GBX_LOST, "No space");
    gbx_zip_writer_destroy(zip);
    close(fd);
    free(bytes);
}

static void a_signal_stops_the_writing(void **state) {
    (void)state;
    int number_of_signal;
    uint64_t written_bytes;
    gbx_held_signals signals;
    gbx_signals_hold(&signals);
    int fd = memfd_create("zip", MFD_CLOEXEC);
    gbx_zip_writer *zip = gbx_zip_writer_create(fd, "all.npz", &signals, GBX_ZIP_LIMITS);
    assert_ok(gbx_zip_writer_begin(zip, "a", 0));
    assert_ok(gbx_zip_writer_end(zip, 0));
    raise(SIGUSR1);
    assert_fails(gbx_zip_writer_finish(zip, &written_bytes), GBX_LOST, "Interrupted");
    assert_int_equal(sigwait(&signals.held, &number_of_signal), 0);
    assert_int_equal(number_of_signal, SIGUSR1);
    gbx_signals_release(&signals);
    gbx_zip_writer_destroy(zip);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_archives_are_these_bytes),
        cmocka_unit_test(long_forms_are_these_bytes),
        cmocka_unit_test(many_members_are_counted_in_64_bits),
        cmocka_unit_test(large_sizes_and_offsets_have_64_bits),
        cmocka_unit_test(members_of_all_sizes_are_complete),
        cmocka_unit_test(a_member_of_another_size_is_refused),
        cmocka_unit_test(a_name_that_is_too_long_is_refused),
        cmocka_unit_test(failed_writes_are_reported),
        cmocka_unit_test(a_signal_stops_the_writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
