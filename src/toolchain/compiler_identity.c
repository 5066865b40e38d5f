#include "toolchain/compiler_identity.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

enum { PROCESSOR_BYTES = 8192 };

bool gbx_find_program(const char *program, char out_real[PATH_MAX]) {
    if (strchr(program, '/'))
        return realpath(program, out_real) != NULL;
    const char *path = getenv("PATH");
    for (const char *at = path ? path : ""; *at; at += strspn(at, ":")) {
        char file[PATH_MAX];
        size_t length = strcspn(at, ":");
        if ((size_t)snprintf(file, sizeof file, "%.*s/%s", (int)length, at, program) <
                sizeof file &&
            access(file, X_OK) == 0)
            return realpath(file, out_real) != NULL;
        at += length;
    }
    return false;
}

/* By its own name: ccache and its like stand behind links of a compiler's name. */
static bool is_compiler(const char *real) {
    const char *name = strrchr(real, '/');
    return strstr(name, "gcc") || strstr(name, "clang");
}

static bool add_file(const char *path, gbx_hash_state *state) {
    char magic[SELFMAG] = "";
    struct stat about;
    size_t count = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_program = fd >= 0 && fstat(fd, &about) == 0 &&
                      gbx_pread_all(fd, magic, sizeof magic, 0, &count) == 0 &&
                      count == sizeof magic && memcmp(magic, ELFMAG, SELFMAG) == 0;
    if (fd >= 0)
        close(fd);
    if (!is_program)
        return false;
    const int64_t identity[] = {about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec,
                                about.st_ctim.tv_sec, about.st_ctim.tv_nsec};
    gbx_hash_update(state, path, strlen(path) + 1);
    gbx_hash_update(state, identity, sizeof identity);
    return true;
}

/* Of the first processor, what does not change with time. */
static bool add_processor(gbx_hash_state *state) {
    static const char *const lines[] = {"model", "flags", "Features", "CPU"};
    char text[PROCESSOR_BYTES + 1];
    size_t count = 0;
    int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    int error = gbx_read_all(fd, text, PROCESSOR_BYTES, &count);
    close(fd);
    if (error)
        return false;
    text[count] = '\0';
    for (const char *line = text; *line && *line != '\n';
         line += strcspn(line, "\n"), line += *line == '\n')
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; ++i)
            if (strncmp(line, lines[i], strlen(lines[i])) == 0)
                gbx_hash_update(state, line, strcspn(line, "\n"));
    return count > 0;
}

bool gbx_compiler_identify(const char *program, gbx_hash_state *state) {
    char real[PATH_MAX];
    return gbx_find_program(program, real) && is_compiler(real) && add_file(real, state) &&
           add_processor(state);
}
