#include "cli/replay_line.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/terminal.h"

static bool is_plain(const char *text) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./-+=:,@%";
    return text[0] && !text[strspn(text, plain)];
}

/* In single quotes, in which only they themselves need something. */
static char *put_quoted(char *at, char c) {
    if (c == '\'')
        return stpcpy(at, "'\\''");
    *at++ = c;
    return at;
}

/* In $'...': octal digits in the place of what no terminal shows. */
static char *put_escaped(char *at, char c) {
    if (c >= ' ' && c <= '~' && c != '\'' && c != '\\') {
        *at++ = c;
        return at;
    }
    return at + sprintf(at, "\\%03o", (unsigned char)c);
}

char *gbx_shell_quote(const char *text) {
    if (is_plain(text))
        return strdup(text);
    size_t capacity = 4 * strlen(text) + 4;
    char *quoted = malloc(capacity);
    if (!quoted)
        return NULL;
    gbx_terminal_escape(text, quoted, capacity);
    bool is_shown = strcmp(quoted, text) == 0;
    char *at = stpcpy(quoted, is_shown ? "'" : "$'");
    for (; *text; ++text)
        at = is_shown ? put_quoted(at, *text) : put_escaped(at, *text);
    memcpy(at, "'", 2);
    return quoted;
}

/* Where a link called latest points to now: after the next run it points elsewhere. NULL where it
 * is no such link. */
static char *follow_latest(const char *directory) {
    static const char latest[] = "latest";
    char link[PATH_MAX], target[PATH_MAX];
    char *path;
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/')
        --length;
    if (length < sizeof latest - 1 || length >= sizeof link)
        return NULL;
    size_t parent = length - (sizeof latest - 1);
    if (strncmp(directory + parent, latest, length - parent) != 0)
        return NULL;
    snprintf(link, sizeof link, "%.*s", (int)length, directory);
    ssize_t bytes = readlink(link, target, sizeof target - 1);
    if (bytes <= 0 || (parent > 0 && directory[parent - 1] != '/'))
        return NULL;
    target[bytes] = '\0';
    int kept = target[0] == '/' ? 0 : (int)parent;
    return asprintf(&path, "%.*s%s", kept, directory, target) < 0 ? NULL : path;
}

/* As the user named it, so that the line is short and works in the same directory. */
static char *dump_name(const gbx_opened_dump *dump, const char *given) {
    const char *directory = dump->directory;
    char *followed = follow_latest(directory);
    if (followed)
        return followed;
    /* Around a tensor_dump that was named, the directory is known by its whole path. */
    if (given && given[0] != '/' && directory[0] == '/')
        directory = given;
    char *name;
    return asprintf(&name, "%s%s", directory[0] == '-' ? "./" : "", directory) < 0 ? NULL : name;
}

gbx_status gbx_replay_line(const gbx_opened_dump *dump, const char *given, const char *task,
                           char **out_text) {
    char *name = dump_name(dump, given);
    char *quoted = name ? gbx_shell_quote(name) : NULL;
    int length = quoted ? asprintf(out_text, "glassbox replay %s --task %s", quoted, task) : -1;
    free(name);
    free(quoted);
    if (length >= 0)
        return NULL;
    *out_text = NULL;
    return gbx_fail_memory("printing results");
}
