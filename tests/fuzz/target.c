#include "target.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[PATH_MAX];
static int scratch_fd = -1;

void fuzz_fail(const char *file, int line, const char *condition) {
    fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, condition);
    abort();
}

/* --- files --- */

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where) {
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

static void remove_scratch(void) {
    nftw(scratch, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_directory(void) {
    if (scratch_fd >= 0)
        return scratch;
    const char *parent = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/glassbox-fuzz-XXXXXX", parent ? parent : "/tmp");
    FUZZ_CHECK(mkdtemp(scratch));
    scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_CHECK(scratch_fd >= 0);
    FUZZ_CHECK(atexit(remove_scratch) == 0);
    return scratch;
}

void fuzz_write_file(const char *name, const void *bytes, size_t size) {
    fuzz_directory();
    int fd = openat(scratch_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0);
    FUZZ_CHECK(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

void fuzz_make_directory(const char *name) {
    fuzz_directory();
    FUZZ_CHECK(mkdirat(scratch_fd, name, 0700) == 0);
}

void fuzz_remove_file(const char *name) {
    fuzz_directory();
    unlinkat(scratch_fd, name, 0);
}

/* --- checks for all targets --- */

/* The length of the UTF-8 character at `text`; 0 if it is invalid or a control character. */
static size_t character_bytes(const unsigned char *text) {
    if (text[0] < 0x80)
        return text[0] >= ' ' && text[0] != 0x7f;
    size_t size = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < size; ++i)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool is_control = text[0] == 0xc2 && text[1] < 0xa0;
    bool is_long = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool is_none = (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf4 && text[1] > 0x8f);
    return is_control || is_long || is_none ? 0 : size;
}

void fuzz_check_line(const char *text) {
    FUZZ_CHECK(text[0] != '\0');
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        size_t size = character_bytes(at);
        if (size == 0)
            fprintf(stderr, "the line: %s\n", text);
        FUZZ_CHECK(size > 0);
        at += size;
    }
}

void fuzz_check_failure(gbx_status status) {
    FUZZ_CHECK(status);
    gbx_code code = gbx_status_code(status);
    if (code != GBX_BAD_FORMAT && code != GBX_OUT_OF_RANGE && code != GBX_NOT_FOUND)
        fprintf(stderr, "%s: %s\n", gbx_code_name(code), gbx_status_message(status));
    FUZZ_CHECK(code == GBX_BAD_FORMAT || code == GBX_OUT_OF_RANGE || code == GBX_NOT_FOUND ||
               code == GBX_UNSUPPORTED);
    fuzz_check_line(gbx_status_message(status));
    gbx_status_free(status);
}

int fuzz_next_descriptor(void) {
    fuzz_directory();
    int fd = fcntl(scratch_fd, F_DUPFD_CLOEXEC, 0);
    FUZZ_CHECK(fd >= 0);
    close(fd);
    return fd;
}

void fuzz_touch(const void *bytes, size_t size) {
    const volatile unsigned char *at = bytes;
    for (size_t i = 0; i < size; ++i)
        (void)at[i];
}

void fuzz_touch_text(const char *text) {
    if (text)
        fuzz_touch(text, strlen(text) + 1);
}
