#include "text/json_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "text/plain_text.h"

enum {
    DEPTH_MAX = 2048,
    HEX_DIGITS_MAX = 16,
    BUFFER_BYTES = 1 << 18,
    VALUE_BYTES_MAX = 64 << 20,
    CUT_BYTES = 8 /* a word, number or character that ends with the buffer may go on behind it */
};

static bool take_value(gbx_scan *scan, int depth, gbx_scan_value *out_value);

static inline bool is_space(char byte) {
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

/* The next byte that is not white space; 0 at the end. */
static inline char peek(gbx_scan *scan) {
    while (scan->at < scan->end && is_space(*scan->at))
        ++scan->at;
    return scan->at < scan->end ? *scan->at : '\0';
}

static inline bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

static inline int hex_digit(char byte) {
    if (is_digit(byte))
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

static bool fail(gbx_scan *scan, const char *expected) {
    scan->expected = expected;
    return false;
}

/* --- taking values --- */

/* After a backslash. */
static bool take_escape(gbx_scan *scan) {
    if (scan->at == scan->end)
        return fail(scan, "an escape");
    char byte = *scan->at++;
    if (byte != 'u')
        return (byte != '\0' && strchr("\"\\/bfnrt", byte)) || fail(scan, "an escape");
    for (int i = 0; i < 4; ++i)
        if (scan->at == scan->end || hex_digit(*scan->at++) < 0)
            return fail(scan, "four hexadecimal digits");
    return true;
}

/* A byte that is not plain ASCII: refuses control characters, and takes the rest of a UTF-8
 * sequence whose first byte was taken. */
static bool take_wide(gbx_scan *scan) {
    const char *first = scan->at - 1;
    size_t bytes =
        gbx_utf8_sequence_bytes((const unsigned char *)first, (size_t)(scan->end - first));
    scan->at = first + bytes;
    return bytes > 0 || fail(scan, "a UTF-8 character");
}

/* From the quote on. */
static bool take_string(gbx_scan *scan, gbx_scan_value *out_value) {
    const char *text = ++scan->at;
    bool has_escape = false;
    while (scan->at < scan->end) {
        char byte = *scan->at++;
        if (byte == '"') {
            *out_value =
                (gbx_scan_value){GBX_SCAN_STRING, has_escape, text, (size_t)(scan->at - 1 - text)};
            return true;
        }
        if ((signed char)byte < 0x20 && !take_wide(scan)) /* or from 0x80 on */
            return false;
        if (byte == '\\') {
            has_escape = true;
            if (!take_escape(scan))
                return false;
        }
    }
    return fail(scan, "the end of a string");
}

static bool take_digits(gbx_scan *scan) {
    const char *first = scan->at;
    while (scan->at < scan->end && is_digit(*scan->at))
        ++scan->at;
    return scan->at > first || fail(scan, "a value");
}

static bool take_number(gbx_scan *scan, gbx_scan_value *out_value) {
    const char *first = scan->at;
    scan->at += *scan->at == '-';
    bool is_zero = scan->at < scan->end && *scan->at == '0';
    if (is_zero)
        ++scan->at;
    else if (!take_digits(scan))
        return false;
    if (scan->at < scan->end && *scan->at == '.') {
        ++scan->at;
        if (!take_digits(scan))
            return false;
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        ++scan->at;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
            ++scan->at;
        if (!take_digits(scan))
            return false;
    }
    *out_value = (gbx_scan_value){GBX_SCAN_NUMBER, false, first, (size_t)(scan->at - first)};
    return true;
}

static bool take_word(gbx_scan *scan, const char *word, size_t size, gbx_scan_kind kind,
                      gbx_scan_value *out_value) {
    if ((size_t)(scan->end - scan->at) < size || memcmp(scan->at, word, size) != 0)
        return fail(scan, "a value");
    *out_value = (gbx_scan_value){kind, false, scan->at, size};
    scan->at += size;
    return true;
}

/* The comma between two, or the bracket at the end. */
static inline bool next_item(gbx_scan *scan, char closing, bool *out_has_one) {
    char next = peek(scan);
    bool is_first = scan->is_first;
    scan->is_first = false;
    *out_has_one = next != closing;
    if (next == closing || (!is_first && next == ','))
        ++scan->at;
    else if (!is_first)
        return fail(scan, closing == '}' ? "\",\" or \"}\"" : "\",\" or \"]\"");
    return true;
}

static inline bool take_key(gbx_scan *scan, gbx_scan_value *out_key) {
    if (peek(scan) != '"')
        return fail(scan, "a key");
    if (!take_string(scan, out_key))
        return false;
    if (peek(scan) != ':')
        return fail(scan, "\":\"");
    ++scan->at;
    return true;
}

/* A complete object or array; each value in it is checked, too. */
static bool take_nested(gbx_scan *scan, int depth, gbx_scan_kind kind, gbx_scan_value *out_value) {
    const char *first = scan->at++;
    char closing = kind == GBX_SCAN_ARRAY ? ']' : '}';
    gbx_scan_value value;
    scan->is_first = true;
    for (;;) {
        bool has_one;
        if (!next_item(scan, closing, &has_one))
            return false;
        if (!has_one)
            break;
        if (kind == GBX_SCAN_OBJECT && !take_key(scan, &value))
            return false;
        if (!take_value(scan, depth - 1, &value))
            return false;
    }
    *out_value = (gbx_scan_value){kind, false, first, (size_t)(scan->at - first)};
    return true;
}

static bool take_value(gbx_scan *scan, int depth, gbx_scan_value *out_value) {
    if (depth == 0)
        return fail(scan, "JSON that is less deeply nested");
    switch (peek(scan)) {
    case '"':
        return take_string(scan, out_value);
    case '[':
        return take_nested(scan, depth, GBX_SCAN_ARRAY, out_value);
    case '{':
        return take_nested(scan, depth, GBX_SCAN_OBJECT, out_value);
    case 't':
        return take_word(scan, "true", 4, GBX_SCAN_TRUE, out_value);
    case 'f':
        return take_word(scan, "false", 5, GBX_SCAN_FALSE, out_value);
    case 'n':
        return take_word(scan, "null", 4, GBX_SCAN_NULL, out_value);
    case '\0':
        return fail(scan, "a value");
    default:
        return take_number(scan, out_value);
    }
}

/* --- walking --- */

bool gbx_scan_begin(gbx_scan *scan, char bracket) {
    if (peek(scan) != bracket)
        return fail(scan, bracket == '{' ? "an object" : "an array");
    ++scan->at;
    scan->is_first = true;
    return true;
}

bool gbx_scan_next_member(gbx_scan *scan, gbx_scan_value *out_key, gbx_scan_value *out_value,
                          bool *out_has_one) {
    if (!next_item(scan, '}', out_has_one))
        return false;
    return !*out_has_one || (take_key(scan, out_key) && take_value(scan, DEPTH_MAX, out_value));
}

bool gbx_scan_next_element(gbx_scan *scan, gbx_scan_value *out_value, bool *out_has_one) {
    if (!next_item(scan, ']', out_has_one))
        return false;
    return !*out_has_one || take_value(scan, DEPTH_MAX, out_value);
}

bool gbx_scan_whole(const char *text, size_t size, gbx_scan_value *out_value) {
    gbx_scan scan = gbx_scan_start(text, size);
    return take_value(&scan, DEPTH_MAX, out_value) && peek(&scan) == '\0' && scan.at == scan.end;
}

/* --- values --- */

bool gbx_scan_integer(const gbx_scan_value *value, uint64_t *out_magnitude, bool *out_is_negative) {
    if (value->kind != GBX_SCAN_NUMBER)
        return false;
    const char *at = value->text;
    const char *end = at + value->size;
    uint64_t magnitude = 0;
    *out_is_negative = *at == '-';
    for (at += *out_is_negative; at < end; ++at) {
        if (!is_digit(*at) || __builtin_mul_overflow(magnitude, 10, &magnitude) ||
            __builtin_add_overflow(magnitude, (uint64_t)(*at - '0'), &magnitude))
            return false;
    }
    *out_magnitude = magnitude;
    return true;
}

bool gbx_scan_hex(const gbx_scan_value *value, uint64_t *out_value) {
    const char *text = value->text;
    uint64_t sum = 0;
    if (value->kind != GBX_SCAN_STRING || value->size < 3 || value->size > 2 + HEX_DIGITS_MAX ||
        text[0] != '0' || text[1] != 'x')
        return false;
    for (size_t i = 2; i < value->size; ++i) {
        int digit = hex_digit(text[i]);
        if (digit < 0)
            return false;
        sum = sum << 4 | (uint64_t)digit;
    }
    *out_value = sum;
    return true;
}

char *gbx_scan_decode(const gbx_scan_value *value) {
    if (!value->has_escape)
        return strndup(value->text, value->size);
    /* Including the quotes around it. */
    json_t *string = json_loadb(value->text - 1, value->size + 2, JSON_DECODE_ANY, NULL);
    char *text = string ? strdup(json_string_value(string)) : NULL;
    json_decref(string);
    return text;
}

bool gbx_scan_is_slow(const gbx_scan_value *value, const char *text, size_t size) {
    char *decoded = gbx_scan_decode(value);
    bool is_same = decoded && strlen(decoded) == size && memcmp(decoded, text, size) == 0;
    free(decoded);
    return is_same;
}

/* --- files: reading --- */

static gbx_status fail_read(const gbx_json_file *file, int error) {
    return gbx_fail(GBX_IO, "reading %s: %s", file->name, strerror(error));
}

/* Lines are counted only for a message. */
static gbx_status count_lines(const gbx_json_file *file, uint64_t offset, uint64_t *out_line) {
    char text[4096];
    *out_line = 1;
    for (uint64_t done = 0; done < offset;) {
        size_t part = offset - done < sizeof text ? (size_t)(offset - done) : sizeof text;
        size_t got = 0;
        int error = gbx_pread_all(file->fd, text, part, done, &got);
        if (error || got == 0)
            return fail_read(file, error ? error : EIO);
        for (size_t i = 0; i < got; ++i)
            *out_line += text[i] == '\n';
        done += got;
    }
    return NULL;
}

/* At byte `at` of the buffer. */
static gbx_status fail_at(const gbx_json_file *file, size_t at, const char *expected) {
    uint64_t line = 0;
    uint64_t offset = file->start + at;
    GBX_TRY(count_lines(file, offset, &line));
    return gbx_fail(GBX_BAD_FORMAT, "%s: line %" PRIu64 ", byte %" PRIu64 ": expected %s",
                    file->name, line, offset, expected);
}

/* Reads more bytes; those not yet taken move to the front. */
static gbx_status read_more(gbx_json_file *file) {
    size_t kept = file->end - file->at;
    memmove(file->buffer, file->buffer + file->at, kept);
    file->start += file->at;
    file->at = 0;
    file->end = kept;
    if (kept > VALUE_BYTES_MAX)
        return fail_at(file, 0, "a value of at most 64 MiB");
    if (kept > file->capacity / 2)
        GBX_TRY(
            gbx_array_reserve(&file->buffer, &file->capacity, 2 * file->capacity, "reading JSON"));
    size_t got = 0;
    int error = gbx_read_all(file->fd, file->buffer + kept, file->capacity - kept, &got);
    if (error)
        return fail_read(file, error);
    file->end += got;
    file->is_whole = file->end < file->capacity;
    return NULL;
}

/* The next byte that is not white space, without taking it; 0 at the end of the file. */
static inline gbx_status see(gbx_json_file *file, char *out_byte) {
    for (;;) {
        while (file->at < file->end && is_space(file->buffer[file->at]))
            ++file->at;
        bool is_there = file->at < file->end;
        *out_byte = is_there ? file->buffer[file->at] : '\0';
        if (is_there || file->is_whole)
            return NULL;
        GBX_TRY(read_more(file));
    }
}

gbx_status gbx_json_file_open(gbx_json_file *file, const char *path, const char *name,
                              bool *out_is_there) {
    struct stat about;
    gbx_status status;
    *file = (gbx_json_file){.fd = -1, .name = name};
    *out_is_there = false;
    /* Not blocking: a pipe without a writer is refused, not waited for. */
    int fd = gbx_above_standard_streams(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0)
        return errno == ENOENT ? NULL : gbx_fail(GBX_IO, "opening %s: %s", path, strerror(errno));
    if (fstat(fd, &about) != 0)
        status = gbx_fail(GBX_IO, "reading %s: %s", path, strerror(errno));
    else if (!S_ISREG(about.st_mode))
        status = gbx_fail(GBX_BAD_FORMAT, "%s is not a regular file", path);
    else
        status = gbx_array_reserve(&file->buffer, &file->capacity, BUFFER_BYTES, "reading JSON");
    if (status) {
        close(fd);
        return status;
    }
    file->fd = fd;
    *out_is_there = true;
    return NULL;
}

void gbx_json_file_close(gbx_json_file *file) {
    if (file->buffer || file->fd > 0) {
        close(file->fd);
        free(file->buffer);
    }
    *file = (gbx_json_file){.fd = -1};
}

uint64_t gbx_json_file_size(const gbx_json_file *file) {
    struct stat about;
    return fstat(file->fd, &about) == 0 ? (uint64_t)about.st_size : 0;
}

uint64_t gbx_json_file_offset(const gbx_json_file *file) {
    return file->start + file->at;
}

/* --- files: walking --- */

gbx_status gbx_json_file_begin(gbx_json_file *file, char bracket) {
    char byte;
    GBX_TRY(see(file, &byte));
    if (byte != bracket)
        return fail_at(file, file->at, bracket == '{' ? "an object" : "an array");
    ++file->at;
    file->is_first = true;
    return NULL;
}

static gbx_status next_in_file(gbx_json_file *file, char closing, bool *out_has_one) {
    char byte;
    GBX_TRY(see(file, &byte));
    bool is_first = file->is_first;
    file->is_first = false;
    *out_has_one = byte != closing;
    if (byte == closing || (!is_first && byte == ','))
        ++file->at;
    else if (!is_first)
        return fail_at(file, file->at, closing == '}' ? "\",\" or \"}\"" : "\",\" or \"]\"");
    return NULL;
}

gbx_status gbx_json_file_next_element(gbx_json_file *file, bool *out_has_one) {
    return next_in_file(file, ']', out_has_one);
}

gbx_status gbx_json_file_take(gbx_json_file *file, gbx_scan_value *out_value) {
    char byte;
    GBX_TRY(see(file, &byte));
    for (;;) {
        gbx_scan scan = gbx_scan_start(file->buffer + file->at, file->end - file->at);
        bool is_taken = take_value(&scan, DEPTH_MAX, out_value);
        bool is_cut = !file->is_whole && scan.end - scan.at < CUT_BYTES &&
                      !(is_taken && out_value->kind >= GBX_SCAN_STRING);
        if (is_cut) {
            GBX_TRY(read_more(file));
            continue;
        }
        size_t at = (size_t)(scan.at - file->buffer);
        if (!is_taken)
            return fail_at(file, at, scan.expected);
        file->at = at;
        return NULL;
    }
}

gbx_status gbx_json_file_next_key(gbx_json_file *file, char out_key[GBX_JSON_KEY_BYTES],
                                  bool *out_has_one) {
    gbx_scan_value key;
    char byte;
    GBX_TRY(next_in_file(file, '}', out_has_one));
    if (!*out_has_one)
        return NULL;
    GBX_TRY(see(file, &byte));
    if (byte != '"')
        return fail_at(file, file->at, "a key");
    GBX_TRY(gbx_json_file_take(file, &key));
    char *text = gbx_scan_decode(&key);
    if (!text)
        return fail_at(file, file->at, "a key without zero bytes or half characters before this");
    snprintf(out_key, GBX_JSON_KEY_BYTES, "%s", text);
    free(text);
    GBX_TRY(see(file, &byte));
    if (byte != ':')
        return fail_at(file, file->at, "\":\"");
    ++file->at;
    return NULL;
}

gbx_status gbx_json_file_document(gbx_json_file *file, json_t **out_value) {
    gbx_scan_value value;
    json_error_t error;
    GBX_TRY(gbx_json_file_take(file, &value));
    bool is_string = value.kind == GBX_SCAN_STRING; /* including the quotes around it */
    *out_value = json_loadb(value.text - is_string, value.size + (is_string ? 2 : 0),
                            JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (*out_value)
        return NULL;
    uint64_t line = 0;
    GBX_TRY(count_lines(file, file->start + (size_t)(value.text - file->buffer), &line));
    gbx_text_make_plain(error.text); /* it quotes the file */
    return gbx_fail(GBX_BAD_FORMAT, "%s: line %" PRIu64 ": %s", file->name,
                    line + (uint64_t)error.line - 1, error.text);
}

gbx_status gbx_json_file_take_same(gbx_json_file *file, const char *text, size_t size,
                                   bool *out_is_same) {
    char byte;
    GBX_TRY(see(file, &byte));
    while (file->end - file->at < size && !file->is_whole && size <= VALUE_BYTES_MAX)
        GBX_TRY(read_more(file));
    *out_is_same = file->end - file->at >= size && memcmp(file->buffer + file->at, text, size) == 0;
    file->at += *out_is_same ? size : 0;
    return NULL;
}

gbx_status gbx_json_file_end(gbx_json_file *file) {
    char byte;
    GBX_TRY(see(file, &byte));
    return file->at == file->end ? NULL : fail_at(file, file->at, "the end of the file");
}
