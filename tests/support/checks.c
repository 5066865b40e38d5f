#include "checks.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

void check_ok(gbx_status status, const char *file, int line) {
    if (!status)
        return;
    print_error("%s: %s\n", gbx_status_site(status), gbx_status_message(status));
    gbx_status_free(status);
    _fail(file, line);
}

void check_fails(gbx_status status, gbx_code code, const char *const *texts, const char *file,
                 int line) {
    bool is_expected = gbx_status_code(status) == code;
    for (; is_expected && *texts; texts += is_expected)
        is_expected = strstr(gbx_status_message(status), *texts) != NULL;
    if (is_expected) {
        gbx_status_free(status);
        return;
    }
    print_error("expected %s with \"%s\", got %s: %s\n", gbx_code_name(code), *texts ? *texts : "",
                gbx_code_name(gbx_status_code(status)), gbx_status_message(status));
    gbx_status_free(status);
    _fail(file, line);
}

const uint32_t hang_timeouts_ms[HANG_TIMEOUTS] = {300, 5000, 60000};

bool is_thread_sanitized(void) {
    const char *sanitizers = getenv("GLASSBOX_SANITIZE");
    return sanitizers && strstr(sanitizers, "thread");
}

size_t count_open_files(void) {
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;
    while (readdir(directory))
        ++count;
    closedir(directory);
    return count;
}

size_t count_mappings_of(const char *name) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    size_t count = 0;
    while (fgets(line, sizeof line, maps))
        count += strstr(line, name) != NULL;
    fclose(maps);
    return count;
}

bool has_children(void) {
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}
