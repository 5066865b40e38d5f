/*
 * Calls a target for every file of the given directories, without libFuzzer, so that every build
 * with any compiler checks the corpus.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

static void replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    FUZZ_CHECK(file);
    FUZZ_CHECK(fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    FUZZ_CHECK(size >= 0);
    rewind(file);
    uint8_t *bytes = malloc((size_t)size + 1);
    FUZZ_CHECK(bytes);
    FUZZ_CHECK(fread(bytes, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(bytes, (size_t)size);
    free(bytes);
}

static size_t replay_directory(const char *path) {
    size_t count = 0;
    DIR *directory = opendir(path);
    FUZZ_CHECK(directory);
    for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        char file[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        replay_file(file);
        ++count;
    }
    closedir(directory);
    return count;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        size_t count = replay_directory(argv[i]);
        FUZZ_CHECK(count > 0);
        printf("%s: %zu files\n", argv[i], count);
    }
    return argc > 1 ? 0 : 2;
}
