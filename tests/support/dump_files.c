#include "dump_files.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

enum { PAYLOAD_ALIGNMENT = 64 };

/* --- files --- */

static void path_of(const dump_files *files, const char *name,
                    char out_path[DUMP_PATH_BYTES + 64]) {
    snprintf(out_path, DUMP_PATH_BYTES + 64, "%s/tensor_dump/%s", files->directory, name);
}

/* All bytes of a file, NULL if it is empty; false if there is no file. */
static bool map_file(const dump_files *files, const char *name, const void **out_bytes,
                     size_t *out_size) {
    char path[DUMP_PATH_BYTES + 64];
    struct stat status;
    path_of(files, name, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out_bytes = NULL;
    *out_size = 0;
    if (fd < 0)
        return false;
    assert_int_equal(fstat(fd, &status), 0);
    *out_size = (size_t)status.st_size;
    if (*out_size > 0) {
        void *bytes = mmap(NULL, *out_size, PROT_READ, MAP_PRIVATE, fd, 0);
        assert_ptr_not_equal(bytes, MAP_FAILED);
        *out_bytes = bytes;
    }
    close(fd);
    return true;
}

static json_t *load_json(const dump_files *files, const char *name) {
    const void *text;
    size_t size;
    json_error_t error;
    if (!map_file(files, name, &text, &size))
        return NULL;
    json_t *document = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!document)
        fail_msg("%s of %s, line %d: %s", name, files->directory, error.line, error.text);
    munmap((void *)(uintptr_t)text, size);
    return document;
}

void dump_files_open(const char *directory, dump_files *out_files) {
    memset(out_files, 0, sizeof *out_files);
    snprintf(out_files->directory, sizeof out_files->directory, "%s", directory);
    out_files->tensors = load_json(out_files, "tensor_dump.json");
    out_files->args = load_json(out_files, "args_dump.json");
    out_files->kernel_args = load_json(out_files, "kernel_args_dump.json");
    const void *payload;
    out_files->has_payload =
        map_file(out_files, "tensor_dump.bin", &payload, &out_files->payload_bytes);
    out_files->payload = payload;
}

void dump_files_close(dump_files *files) {
    json_decref(files->tensors);
    json_decref(files->args);
    json_decref(files->kernel_args);
    if (files->payload)
        munmap((void *)(uintptr_t)files->payload, files->payload_bytes);
    memset(files, 0, sizeof *files);
}

/* --- fields --- */

static void fail_field(const json_t *object, const char *field, const char *expected) {
    char *text = json_dumps(object, JSON_COMPACT | JSON_ENCODE_ANY);
    print_error("%.600s\n", text ? text : "(nothing)");
    free(text);
    fail_msg("field \"%s\": %s is expected", field, expected);
}

const json_t *dump_field(const json_t *object, const char *field) {
    const json_t *value = json_object_get(object, field);
    if (!value)
        fail_field(object, field, "a value");
    return value;
}

int64_t dump_signed(const json_t *object, const char *field) {
    const json_t *value = dump_field(object, field);
    if (!json_is_integer(value))
        fail_field(object, field, "a whole number");
    return json_integer_value(value);
}

uint64_t dump_number(const json_t *object, const char *field) {
    int64_t value = dump_signed(object, field);
    if (value < 0 || value >= INT64_C(1) << 53)
        fail_field(object, field, "a number from 0 to below 2^53");
    return (uint64_t)value;
}

bool dump_bool(const json_t *object, const char *field) {
    const json_t *value = dump_field(object, field);
    if (!json_is_boolean(value))
        fail_field(object, field, "true or false");
    return json_is_true(value);
}

const char *dump_text(const json_t *object, const char *field) {
    const json_t *value = dump_field(object, field);
    if (!json_is_string(value))
        fail_field(object, field, "a string");
    return json_string_value(value);
}

uint64_t dump_hex(const json_t *object, const char *field) {
    const char *text = dump_text(object, field);
    char *end = NULL;
    uint64_t value = strtoull(text, &end, 16);
    if (strncmp(text, "0x", 2) != 0 || end == text + 2 || *end != '\0')
        fail_field(object, field, "a string \"0x...\"");
    return value;
}

const json_t *dump_array(const json_t *object, const char *field) {
    const json_t *value = dump_field(object, field);
    if (!json_is_array(value))
        fail_field(object, field, "an array");
    return value;
}

bool dump_array_is(const json_t *object, const char *field, const int64_t *numbers, size_t count) {
    const json_t *array = dump_array(object, field);
    if (json_array_size(array) != count)
        return false;
    for (size_t i = 0; i < count; ++i) {
        const json_t *element = json_array_get(array, i);
        if (!json_is_integer(element) || json_integer_value(element) != numbers[i])
            return false;
    }
    return true;
}

bool dump_texts_are(const json_t *object, const char *field, const char *const *texts,
                    size_t count) {
    const json_t *array = dump_array(object, field);
    if (json_array_size(array) != count)
        return false;
    for (size_t i = 0; i < count; ++i) {
        const json_t *element = json_array_get(array, i);
        if (!json_is_string(element) || strcmp(json_string_value(element), texts[i]) != 0)
            return false;
    }
    return true;
}

/* --- entries --- */

size_t dump_entry_count(const dump_files *files) {
    assert_non_null(files->tensors);
    return json_array_size(dump_array(files->tensors, "tensors"));
}

const json_t *dump_entry(const dump_files *files, size_t index) {
    return json_array_get(json_object_get(files->tensors, "tensors"), index);
}

static bool is_after(const json_t *entry) {
    const char *stage = dump_text(entry, "stage");
    if (strcmp(stage, "after_completion") == 0)
        return true;
    if (strcmp(stage, "before_dispatch") != 0)
        fail_field(entry, "stage", "before_dispatch or after_completion");
    return false;
}

static int compare_place(const json_t *entry, uint64_t task_seq, uint32_t arg_index, bool after) {
    uint64_t seq = dump_number(entry, "task_seq"), arg = dump_number(entry, "arg_index");
    if (seq != task_seq)
        return seq < task_seq ? -1 : 1;
    if (is_after(entry) != after)
        return after ? -1 : 1;
    return arg < arg_index ? -1 : arg > arg_index;
}

/* Entries are sorted: dump_check_itself checks it. */
const json_t *dump_find(const dump_files *files, uint64_t task_seq, uint32_t arg_index,
                        bool after) {
    size_t low = 0, high = dump_entry_count(files);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_place(dump_entry(files, middle), task_seq, arg_index, after);
        if (order == 0)
            return dump_entry(files, middle);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const uint8_t *dump_payload(const dump_files *files, const json_t *entry) {
    uint64_t offset = dump_number(entry, "bin_offset"), bytes = dump_number(entry, "bin_size");
    if (offset > files->payload_bytes || bytes > files->payload_bytes - offset)
        fail_field(entry, "bin_offset", "bytes inside of tensor_dump.bin");
    return files->payload + offset;
}

void dump_hash(const void *bytes, size_t size, char out_text[DUMP_HASH_BYTES]) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, size));
    for (size_t i = 0; i < sizeof canonical.digest; ++i) {
        out_text[2 * i] = "0123456789abcdef"[canonical.digest[i] >> 4];
        out_text[2 * i + 1] = "0123456789abcdef"[canonical.digest[i] & 15];
    }
    out_text[DUMP_HASH_BYTES - 1] = '\0';
}

/* --- a manifest by itself --- */

typedef struct range {
    uint64_t first;
    uint64_t bytes;
} range;

typedef struct sums {
    uint64_t records, before, after, inputs, outputs, inouts, truncated, in_flight;
    uint64_t with_bytes, payload_bytes, stored_bytes, stored;
    range *ranges; /* of entries with bytes */
} sums;

static void check_order(const dump_files *files, size_t index) {
    const json_t *entry = dump_entry(files, index);
    if (dump_number(entry, "index") != index)
        fail_field(entry, "index", "the place in the array");
    if (index == 0)
        return;
    int order = compare_place(dump_entry(files, index - 1), dump_number(entry, "task_seq"),
                              (uint32_t)dump_number(entry, "arg_index"), is_after(entry));
    if (order >= 0)
        fail_field(entry, "task_seq", "order by task_seq, stage and arg_index, each once");
}

static void check_hash(const dump_files *files, const json_t *entry) {
    char text[DUMP_HASH_BYTES];
    dump_hash(dump_payload(files, entry), dump_number(entry, "bin_size"), text);
    if (strcmp(dump_text(entry, "hash"), text) != 0)
        fail_field(entry, "hash", text);
}

static void count_bytes(const dump_files *files, const json_t *entry, sums *out) {
    uint64_t offset = dump_number(entry, "bin_offset"), bytes = dump_number(entry, "bin_size");
    if (bytes == 0)
        return;
    if (offset % PAYLOAD_ALIGNMENT != 0)
        fail_field(entry, "bin_offset", "a multiple of 64");
    check_hash(files, entry);
    out->ranges[out->with_bytes++] = (range){offset, bytes};
    out->payload_bytes += bytes;
}

static void count_entry(const dump_files *files, const json_t *entry, sums *out) {
    const char *role = dump_text(entry, "role");
    bool is_tensor = strcmp(dump_text(entry, "kind"), "tensor") == 0;
    if (is_tensor)
        count_bytes(files, entry, out);
    if (dump_bool(entry, "in_flight")) {
        ++out->in_flight;
        return;
    }
    ++out->records;
    ++*(is_after(entry) ? &out->after : &out->before);
    ++*(strcmp(role, "input") == 0    ? &out->inputs
        : strcmp(role, "output") == 0 ? &out->outputs
                                      : &out->inouts);
    out->truncated += is_tensor && dump_bool(entry, "truncated");
}

static int by_first(const void *left, const void *right) {
    const range *a = left, *b = right;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

/* Two payloads are the same or do not overlap. */
static void count_stored(sums *out) {
    qsort(out->ranges, out->with_bytes, sizeof *out->ranges, by_first);
    for (size_t i = 0; i < out->with_bytes; ++i) {
        const range *one = &out->ranges[i], *last = i > 0 ? one - 1 : NULL;
        if (last && by_first(last, one) == 0)
            continue;
        if (last && last->first + last->bytes > one->first)
            fail_msg("payloads at %" PRIu64 " and %" PRIu64 " overlap", last->first, one->first);
        ++out->stored;
        out->stored_bytes += one->bytes;
    }
}

static void check_total(const json_t *head, const char *field, uint64_t expected) {
    if (dump_number(head, field) != expected)
        fail_msg("\"%s\" is %" PRIu64 ", the entries say %" PRIu64, field, dump_number(head, field),
                 expected);
}

static uint64_t count_losses(const json_t *head) {
    const json_t *losses = dump_array(head, "losses");
    uint64_t count = 0;
    for (size_t i = 0; i < json_array_size(losses); ++i)
        count += dump_number(json_array_get(losses, i), "count");
    return count;
}

/* Results share the bytes of entries, or have their own. */
static void check_results(const dump_files *files, const sums *out) {
    const json_t *results = dump_array(files->tensors, "results");
    uint64_t payload_bytes = 0, stored_bytes = 0;
    for (size_t i = 0; i < json_array_size(results); ++i) {
        const json_t *one = json_array_get(results, i);
        const range mine = {dump_number(one, "bin_offset"), dump_number(one, "bin_size")};
        bool is_shared = mine.bytes == 0;
        for (size_t k = 0; k < out->with_bytes; ++k)
            is_shared |= by_first(&out->ranges[k], &mine) == 0;
        for (size_t k = 0; k < i; ++k)
            is_shared |= dump_number(json_array_get(results, k), "bin_offset") == mine.first;
        payload_bytes += mine.bytes;
        stored_bytes += is_shared ? 0 : mine.bytes;
        assert_int_equal(dump_number(one, "index"), i);
    }
    check_total(files->tensors, "total_results", json_array_size(results));
    check_total(files->tensors, "result_payload_bytes", payload_bytes);
    check_total(files->tensors, "result_stored_bytes", stored_bytes);
}

static void check_head(const dump_files *files, const sums *out) {
    const json_t *head = files->tensors;
    check_total(head, "schema_version", 1);
    check_total(head, "total_tensors", out->records);
    check_total(head, "before_dispatch", out->before);
    check_total(head, "after_completion", out->after);
    check_total(head, "input_tensors", out->inputs);
    check_total(head, "output_tensors", out->outputs);
    check_total(head, "inout_tensors", out->inouts);
    check_total(head, "truncated_tensors", out->truncated);
    check_total(head, "dropped_records", count_losses(head));
    check_total(head, "dropped_overwrite", 0);
    check_total(head, "payload_bytes", out->payload_bytes);
    check_total(head, "stored_bytes", out->stored_bytes);
    check_total(head, "deduplicated_tensors", out->with_bytes - out->stored);
    dump_number(head, "stall_ns");
    assert_string_equal(dump_text(dump_field(head, "bin_format"), "type"), "logical_contiguous");
    assert_string_equal(dump_text(dump_field(head, "bin_format"), "byte_order"), "little_endian");
    assert_string_equal(dump_text(head, "bin_file"), "tensor_dump.bin");
    assert_true(strlen(dump_text(head, "generator")) > 0);
}

void dump_check_itself(const dump_files *files) {
    size_t count = dump_entry_count(files);
    sums out = {.ranges = malloc((count + 1) * sizeof(range))};
    assert_non_null(out.ranges);
    for (size_t i = 0; i < count; ++i) {
        check_order(files, i);
        count_entry(files, dump_entry(files, i), &out);
    }
    count_stored(&out);
    check_head(files, &out);
    check_results(files, &out);
    free(out.ranges);
}

/* --- two manifests of one graph --- */

static const char *const head_differs[] = {"run", "run_dir", "stall_ns", "tensors", "results"};
static const char *const result_differs[] = {"buffer_addr", "pieces", "bin_offset"};
static const char *const entry_differs[] = {"time_ns",  "thread", "buffer_addr", "bin_offset",
                                            "start_ns", "end_ns", "cores"};

static bool is_among(const char *field, const char *const *fields, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (strcmp(field, fields[i]) == 0)
            return true;
    return false;
}

/* Every field of `a`, with some exceptions, has the same value in `b`, and both have as many
 * fields. */
static void assert_same(const json_t *a, const json_t *b, const char *const *fields, size_t count) {
    json_t *object = (json_t *)(uintptr_t)a;
    const char *field;
    json_t *value;
    bool is_same = json_object_size(a) == json_object_size(b);
    json_object_foreach(object, field, value) is_same &=
        json_equal(value, json_object_get(b, field)) || is_among(field, fields, count);
    if (is_same)
        return;
    char *left = json_dumps(a, JSON_COMPACT), *right = json_dumps(b, JSON_COMPACT);
    print_error("%.900s\n%.900s\n", left, right);
    free(left);
    free(right);
    fail_msg("two dumps of one graph differ");
}

void dump_assert_equal(const dump_files *a, const dump_files *b) {
    size_t count = dump_entry_count(a);
    assert_same(a->tensors, b->tensors, head_differs, 5);
    const json_t *results = dump_array(a->tensors, "results");
    assert_int_equal(json_array_size(results), json_array_size(dump_array(b->tensors, "results")));
    for (size_t i = 0; i < json_array_size(results); ++i)
        assert_same(json_array_get(results, i),
                    json_array_get(dump_array(b->tensors, "results"), i), result_differs, 3);
    assert_int_equal(dump_entry_count(b), count);
    for (size_t i = 0; i < count; ++i) {
        const json_t *left = dump_entry(a, i), *right = dump_entry(b, i);
        assert_same(left, right, entry_differs, sizeof entry_differs / sizeof entry_differs[0]);
        if (strcmp(dump_text(left, "kind"), "tensor") == 0)
            assert_memory_equal(dump_payload(a, left), dump_payload(b, right),
                                dump_number(left, "bin_size"));
    }
}

void dump_assert_python_reads(const dump_files *files) {
    static const char script[] =
        "import glob, json, sys\n"
        "def refuse(text): raise ValueError(text)\n"
        "found = glob.glob(glob.escape(sys.argv[1]) + '/tensor_dump/*.json')\n"
        "for path in found: json.load(open(path, encoding='utf-8'), parse_constant=refuse)\n"
        "assert len(found) == int(sys.argv[2]), found\n";
    char count[8];
    snprintf(count, sizeof count, "%d",
             (files->tensors != NULL) + (files->args != NULL) + (files->kernel_args != NULL));
    char *const words[] = {
        "python3", "-c", (char *)(uintptr_t)script, (char *)(uintptr_t)files->directory,
        count,     NULL};
    pid_t pid;
    int status = -1;
    assert_int_equal(posix_spawn(&pid, "/usr/bin/python3", NULL, NULL, words, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* --- around a run --- */

void dump_directory_make(char out_directory[DUMP_PATH_BYTES]) {
    const char *parent = getenv("TMPDIR");
    char own[DUMP_PATH_BYTES / 2];
    snprintf(own, sizeof own, "%s/glassbox-dump-test-XXXXXX", parent ? parent : "/tmp");
    assert_non_null(mkdtemp(own));
    snprintf(out_directory, DUMP_PATH_BYTES, "%s/made/on the way/dump", own);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)status, (void)type, (void)walk;
    return remove(path);
}

void dump_directory_remove(const char *directory) {
    char own[DUMP_PATH_BYTES];
    snprintf(own, sizeof own, "%s", directory);
    char *tail = strstr(own, "/made/");
    assert_non_null(tail);
    *tail = '\0';
    nftw(own, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* With a sanitizer: its reports go to the terminal, not to the log of a run. */
__attribute__((weak)) void __sanitizer_set_report_fd(void *fd);

static void send_reports_to(int fd) {
    if (__sanitizer_set_report_fd)
        __sanitizer_set_report_fd((void *)(intptr_t)fd);
}

dump_log dump_log_begin(void) {
    dump_log log = {.old_stderr = dup(STDERR_FILENO)};
    log.file = memfd_create("dump-test-log", MFD_CLOEXEC);
    assert_true(log.old_stderr >= 0 && log.file >= 0);
    fflush(stderr);
    send_reports_to(log.old_stderr);
    assert_true(dup2(log.file, STDERR_FILENO) >= 0);
    return log;
}

char *dump_log_end(dump_log *log) {
    fflush(stderr);
    assert_true(dup2(log->old_stderr, STDERR_FILENO) >= 0);
    send_reports_to(STDERR_FILENO);
    off_t bytes = lseek(log->file, 0, SEEK_END);
    char *text = calloc(1, (size_t)bytes + 1);
    assert_non_null(text);
    assert_int_equal(pread(log->file, text, (size_t)bytes, 0), bytes);
    close(log->file);
    close(log->old_stderr);
    return text;
}
