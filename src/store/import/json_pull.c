#include "store/import/json_pull.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "text/plain_text.h"

enum { VALUE_BYTES_MAX = 64 << 20, BUFFER_BYTES = 1 << 18 };

/* --- bytes --- */

static bool fill_buffer(gbx_json_pull *pull) {
    pull->buffer_start += pull->buffer_bytes;
    pull->buffer_bytes = fread(pull->buffer, 1, BUFFER_BYTES, pull->file);
    pull->buffer_at = 0;
    return pull->buffer_bytes > 0;
}

static inline int next_byte(gbx_json_pull *pull) {
    if (pull->buffer_at == pull->buffer_bytes && !fill_buffer(pull))
        return EOF;
    int byte = pull->buffer[pull->buffer_at++];
    pull->line += byte == '\n';
    return byte;
}

/* The byte that was taken last. */
static void put_back(gbx_json_pull *pull, int byte) {
    if (byte == EOF)
        return;
    --pull->buffer_at;
    pull->line -= byte == '\n';
}

static int next_visible(gbx_json_pull *pull) {
    int byte = next_byte(pull);
    while (byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r')
        byte = next_byte(pull);
    return byte;
}

static gbx_status fail_at(const gbx_json_pull *pull, const char *expected) {
    if (ferror(pull->file))
        return gbx_fail(GBX_IO, "reading %s: %s", pull->name, strerror(errno));
    return gbx_fail(GBX_BAD_FORMAT, "%s: line %" PRIu64 ", byte %" PRIu64 ": %s is expected",
                    pull->name, pull->line, gbx_json_pull_offset(pull), expected);
}

static inline bool keep(gbx_json_pull *pull, int byte) {
    if (pull->size == pull->capacity) {
        size_t capacity = pull->capacity ? 2 * pull->capacity : 4096;
        char *text = capacity <= VALUE_BYTES_MAX ? realloc(pull->text, capacity) : NULL;
        if (!text)
            return false;
        pull->text = text;
        pull->capacity = capacity;
    }
    pull->text[pull->size++] = (char)byte;
    return true;
}

/* --- beginning and end --- */

/* NULL where there is no such file. */
static gbx_status open_regular(const char *path, FILE **out_file) {
    struct stat about;
    *out_file = NULL;
    /* Not blocking: a pipe that nobody writes is refused, not waited for. */
    int fd = gbx_above_standard_streams(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0 && errno == ENOENT)
        return NULL;
    if (fd < 0)
        return gbx_fail(GBX_IO, "opening %s: %s", path, strerror(errno));
    gbx_status status = NULL;
    if (fstat(fd, &about) != 0)
        status = gbx_fail(GBX_IO, "reading %s: %s", path, strerror(errno));
    else if (!S_ISREG(about.st_mode))
        status = gbx_fail(GBX_BAD_FORMAT, "%s is not a regular file, as JSON of a dump is", path);
    else if (!(*out_file = fdopen(fd, "r")))
        status = gbx_fail(GBX_EXHAUSTED, "reading %s: the host is out of memory", path);
    if (status)
        close(fd);
    return status;
}

gbx_status gbx_json_pull_open(gbx_json_pull *pull, const char *path, const char *name,
                              bool *out_is_there) {
    *pull = (gbx_json_pull){.name = name, .line = 1};
    gbx_status status = open_regular(path, &pull->file);
    *out_is_there = pull->file != NULL;
    if (status || !pull->file)
        return status;
    setvbuf(pull->file, NULL, _IONBF, 0);
    pull->buffer = malloc(BUFFER_BYTES);
    return pull->buffer ? NULL
                        : gbx_fail(GBX_EXHAUSTED, "reading %s: the host is out of memory", path);
}

uint64_t gbx_json_pull_size(const gbx_json_pull *pull) {
    struct stat about;
    return fstat(fileno(pull->file), &about) == 0 ? (uint64_t)about.st_size : 0;
}

uint64_t gbx_json_pull_offset(const gbx_json_pull *pull) {
    return pull->buffer_start + pull->buffer_at;
}

void gbx_json_pull_close(gbx_json_pull *pull) {
    if (pull->file)
        fclose(pull->file);
    free(pull->text);
    free(pull->buffer);
    *pull = (gbx_json_pull){0};
}

gbx_status gbx_json_pull_end(gbx_json_pull *pull) {
    return next_visible(pull) == EOF && !ferror(pull->file) ? NULL
                                                            : fail_at(pull, "the end of the file");
}

/* --- structure --- */

gbx_status gbx_json_pull_begin(gbx_json_pull *pull, char bracket) {
    if (next_visible(pull) != bracket)
        return fail_at(pull, bracket == '{' ? "an object" : "an array");
    pull->is_first = true;
    return NULL;
}

/* The comma between two, or the bracket at the end. */
static gbx_status next_item(gbx_json_pull *pull, char bracket, bool *out_has_one) {
    int byte = next_visible(pull);
    *out_has_one = byte != bracket;
    if (byte == bracket) {
        pull->is_first = false;
        return NULL;
    }
    if (pull->is_first)
        put_back(pull, byte);
    else if (byte != ',')
        return fail_at(pull, bracket == '}' ? "\",\" or \"}\"" : "\",\" or \"]\"");
    pull->is_first = false;
    return NULL;
}

gbx_status gbx_json_pull_next_element(gbx_json_pull *pull, bool *out_has_one) {
    return next_item(pull, ']', out_has_one);
}

gbx_status gbx_json_pull_next_key(gbx_json_pull *pull, char out_key[GBX_JSON_PULL_KEY_BYTES],
                                  bool *out_has_one) {
    json_t *key;
    GBX_TRY(next_item(pull, '}', out_has_one));
    if (!*out_has_one)
        return NULL;
    GBX_TRY(gbx_json_pull_value(pull, &key));
    bool is_string = json_is_string(key);
    snprintf(out_key, GBX_JSON_PULL_KEY_BYTES, "%s", is_string ? json_string_value(key) : "");
    json_decref(key);
    return is_string && next_visible(pull) == ':' ? NULL : fail_at(pull, "a key and \":\"");
}

/* --- values --- */

static inline gbx_status keep_or_fail(gbx_json_pull *pull, int byte) {
    return keep(pull, byte) ? NULL : fail_at(pull, "a value of at most 64 MiB");
}

static gbx_status take_string(gbx_json_pull *pull) {
    for (;;) {
        int byte = next_byte(pull);
        if (byte == EOF)
            return fail_at(pull, "the end of a string");
        GBX_TRY(keep_or_fail(pull, byte));
        if (byte == '"')
            return NULL;
        if (byte == '\\')
            GBX_TRY(keep_or_fail(pull, next_byte(pull)));
    }
}

/* Up to what follows a number, true, false or null. */
static gbx_status take_word(gbx_json_pull *pull) {
    for (;;) {
        int byte = next_byte(pull);
        if (byte == EOF || strchr(",]} \t\r\n", byte)) {
            put_back(pull, byte);
            return NULL;
        }
        GBX_TRY(keep_or_fail(pull, byte));
    }
}

/* All of an object or array; whether it is right inside is for the parser to find out. */
static gbx_status take_nested(gbx_json_pull *pull) {
    uint64_t depth = 1;
    while (depth > 0) {
        int byte = next_byte(pull);
        if (byte == EOF)
            return fail_at(pull, "the end of an object or array");
        GBX_TRY(keep_or_fail(pull, byte));
        if (byte == '"')
            GBX_TRY(take_string(pull));
        depth += byte == '{' || byte == '[';
        depth -= byte == '}' || byte == ']';
    }
    return NULL;
}

gbx_status gbx_json_pull_text(gbx_json_pull *pull) {
    int byte = next_visible(pull);
    pull->text_line = pull->line;
    if (byte == EOF)
        return fail_at(pull, "a value");
    pull->size = 0;
    GBX_TRY(keep_or_fail(pull, byte));
    if (byte == '"')
        return take_string(pull);
    return byte == '{' || byte == '[' ? take_nested(pull) : take_word(pull);
}

gbx_status gbx_json_pull_parse(gbx_json_pull *pull, json_t **out_value) {
    json_error_t error;
    *out_value =
        json_loadb(pull->text, pull->size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (*out_value)
        return NULL;
    gbx_text_make_plain(error.text); /* it quotes the file */
    return gbx_fail(GBX_BAD_FORMAT, "%s: line %" PRIu64 ": %s", pull->name,
                    pull->text_line + (uint64_t)error.line - 1, error.text);
}

gbx_status gbx_json_pull_value(gbx_json_pull *pull, json_t **out_value) {
    GBX_TRY(gbx_json_pull_text(pull));
    return gbx_json_pull_parse(pull, out_value);
}
