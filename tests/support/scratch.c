#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[128];
static char mounted[64]; /* left by a failed test, below the directory */

bool scratch_enter(const char *parent) {
    snprintf(directory, sizeof directory, "%s/glassbox-test-XXXXXX", parent ? parent : "/tmp");
    return mkdtemp(directory) && chdir(directory) == 0;
}

bool scratch_leave(void) {
    char command[160];
    if (mounted[0])
        scratch_unmount(mounted);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return chdir("/") == 0 && system(command) == 0;
}

static bool write_map(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return is_written;
}

/* A user who may not mount may do so in a user namespace, if the system has them. */
static bool enter_own_users(void) {
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1", geteuid(), geteuid());
    snprintf(groups, sizeof groups, "%u %u 1", getegid(), getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_map("/proc/self/setgroups", "deny") &&
           write_map("/proc/self/uid_map", users) && write_map("/proc/self/gid_map", groups);
}

/* Once per process. */
static bool enter_own_mounts(void) {
    static bool is_own;
    if (is_own)
        return true;
    if (unshare(CLONE_NEWNS) != 0 && !enter_own_users())
        return false;
    is_own = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    return is_own;
}

bool scratch_mount(const char *type, const char *name, const char *options) {
    assert_int_equal(mkdir(name, 0777), 0);
    if (enter_own_mounts() && mount(type, name, type, 0, options) == 0) {
        snprintf(mounted, sizeof mounted, "%s", name);
        return true;
    }
    print_message("skipped: cannot mount a %s here: %s\n", type, strerror(errno));
    return false;
}

void scratch_unmount(const char *name) {
    assert_int_equal(umount2(name, MNT_DETACH), 0);
    mounted[0] = '\0';
}

void scratch_limit_files(uint64_t bytes) {
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes == UINT64_MAX ? limit.rlim_max : bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

unsigned char *scratch_read(const char *path, size_t *out_size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat found;
    if (fd < 0 || fstat(fd, &found) != 0)
        fail_msg("reading %s: %s", path, strerror(errno));
    *out_size = (size_t)found.st_size;
    unsigned char *bytes = malloc(*out_size + 1);
    assert_non_null(bytes);
    size_t done = 0;
    while (done < *out_size) {
        ssize_t count = read(fd, bytes + done, *out_size - done);
        assert_true(count > 0);
        done += (size_t)count;
    }
    close(fd);
    return bytes;
}

void scratch_write(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

bool scratch_exists(const char *path) {
    struct stat found;
    return lstat(path, &found) == 0;
}
