#include "store/run/source_tree.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

enum { MAX_FILE_BYTES = 16 << 20 };

/* --- paths --- */

/* Takes "//", "." and ".." out of an absolute path, in place. */
static void normalise(char *path) {
    char *out = path;
    for (const char *part = path; *part;) {
        while (*part == '/')
            ++part;
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.') {
            while (out > path && *--out != '/')
                ;
        } else if (length > 0 && !(length == 1 && part[0] == '.')) {
            *out++ = '/';
            memmove(out, part, length);
            out += length;
        }
        part += length;
    }
    *out = '\0';
}

/* "DIRECTORY/NAME", normalised; NULL when it is too long. `name` may be absolute. */
static char *join(const char *directory, size_t directory_length, const char *name,
                  size_t name_length) {
    char path[PATH_MAX];
    int length = name[0] == '/' ? snprintf(path, sizeof path, "%.*s", (int)name_length, name)
                                : snprintf(path, sizeof path, "%.*s/%.*s", (int)directory_length,
                                           directory, (int)name_length, name);
    if (length >= (int)sizeof path)
        return NULL;
    normalise(path);
    return strdup(path);
}

static char *make_absolute(const char *path) {
    char directory[PATH_MAX];
    if (!getcwd(directory, sizeof directory))
        return NULL;
    return join(directory, strlen(directory), path, strlen(path));
}

/* --- files --- */

/* Takes ownership of the path. */
static gbx_status add_file(gbx_source_tree *tree, char *path) {
    gbx_status status =
        gbx_read_file(path, MAX_FILE_BYTES, &tree->texts[tree->count], &tree->sizes[tree->count]);
    if (status)
        free(path);
    else
        tree->paths[tree->count++] = path;
    return status;
}

static bool has_file(const gbx_source_tree *tree, const char *path) {
    for (size_t i = 0; i < tree->count; ++i)
        if (strcmp(tree->paths[i], path) == 0)
            return true;
    return false;
}

/* --- includes --- */

/* The name between the quotes of an include, and how long it is; NULL for another line. */
static const char *find_name(const char *line, size_t *out_length) {
    static const char blanks[] = " \t";
    line += strspn(line, blanks);
    if (*line++ != '#')
        return NULL;
    line += strspn(line, blanks);
    if (strncmp(line, "include", 7) != 0)
        return NULL;
    line += 7;
    line += strspn(line, blanks);
    if (*line++ != '"')
        return NULL;
    *out_length = strcspn(line, "\"\n");
    return line[*out_length] == '"' && *out_length > 0 ? line : NULL;
}

static void add_included(gbx_source_tree *tree, const char *from, const char *name, size_t length) {
    size_t directory_length = (size_t)(strrchr(from, '/') - from);
    char *path = join(from, directory_length, name, length);
    if (!path || has_file(tree, path) || tree->count == GBX_SOURCE_TREE_FILES)
        free(path);
    else /* one that cannot be read is left out */
        gbx_status_free(add_file(tree, path));
}

static void add_includes(gbx_source_tree *tree, size_t file) {
    const char *from = tree->paths[file];
    for (const char *line = tree->texts[file]; line; line = strchr(line, '\n')) {
        size_t length;
        line += *line == '\n';
        const char *name = find_name(line, &length);
        if (name)
            add_included(tree, from, name, length);
    }
}

static size_t shared_length(const gbx_source_tree *tree) {
    size_t length = (size_t)(strrchr(tree->paths[0], '/') - tree->paths[0]) + 1;
    for (size_t i = 1; i < tree->count; ++i)
        while (strncmp(tree->paths[0], tree->paths[i], length) != 0)
            do
                --length;
            while (tree->paths[0][length - 1] != '/');
    return length;
}

gbx_status gbx_source_tree_read(const char *path, gbx_source_tree **out_tree) {
    gbx_source_tree *tree = calloc(1, sizeof *tree);
    char *absolute = make_absolute(path);
    *out_tree = NULL;
    gbx_status status =
        tree && absolute ? add_file(tree, absolute)
                         : gbx_fail(GBX_IO, "reading %s: its path cannot be made absolute", path);
    if (status) {
        free(tree ? NULL : absolute);
        gbx_source_tree_free(tree);
        return status;
    }
    for (size_t i = 0; i < tree->count; ++i)
        add_includes(tree, i);
    tree->root_length = shared_length(tree);
    *out_tree = tree;
    return NULL;
}

void gbx_source_tree_free(gbx_source_tree *tree) {
    if (!tree)
        return;
    for (size_t i = 0; i < tree->count; ++i) {
        free(tree->paths[i]);
        free(tree->texts[i]);
    }
    free(tree);
}
