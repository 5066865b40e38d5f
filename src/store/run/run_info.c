#include "store/run/run_info.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <glassbox/chip.h>
#include <glassbox/tensor.h>

#include "base/clock.h"
#include "base/memory.h"
#include "tensor/signature.h"
#include "text/json_reader.h"
#include "text/json_writer.h"

enum { SCHEMA_VERSION = 1, MAX_FILE_BYTES = 16 << 20, PATH_BYTES = 4096 };

/* --- the fields --- */

typedef enum field_kind {
    TEXT,
    PATH, /* a text written as an absolute path */
    NUMBER32,
    NUMBER64,
    SECONDS,
    FLAG,
    TEXTS,  /* an array of strings */
    GROUP,  /* an object whose fields belong to the same struct */
    LIST,   /* an array of objects */
    SCHEMA, /* the number SCHEMA_VERSION */
    FUNC_ID,
    CORE_TYPE,
    SIGNATURE,
    ARG_NAMES,
    SLOT_NAMES,
    COPY, /* of a file, in the dump */
    COPY_HASH
} field_kind;

/* Where a field is written and read, and whether it is required when read. */
enum {
    RECORD = 1,
    RUN_JSON = 2,
    BOTH = RECORD | RUN_JSON,
    ENDED = 4,  /* written only after the run */
    OR_NULL = 8 /* required, but may be null */
};

typedef struct run_field {
    const char *name;
    field_kind kind;
    uint8_t written;
    uint8_t read;
    uint8_t needed;
    size_t offset;
    const struct run_field *fields; /* of a group or list item; ends with one without a name */
    size_t item_bytes;              /* of a list; its count follows its pointer */
    int64_t min;                    /* of a number */
    int64_t max;                    /* of a number; most items of a list */
} run_field;

#define OF_RUN(member) .offset = offsetof(gbx_run_info, member)
#define OF_KERNEL(member) .offset = offsetof(gbx_run_kernel, member)
#define OF_ARGUMENT(member) .offset = offsetof(gbx_run_argument, member)
#define COUNT_FOLLOWS(list, count)                                                                 \
    static_assert(offsetof(gbx_run_info, count) == offsetof(gbx_run_info, list) + sizeof(void *),  \
                  #count " follows " #list)
COUNT_FOLLOWS(filters, filter_count);
COUNT_FOLLOWS(kernels, kernel_count);
COUNT_FOLLOWS(arguments, argument_count);

static size_t count_of(const void *list) {
    return *(const size_t *)((const char *)list + sizeof(void *));
}

static const run_field identity_fields[] = {
    {"run_id", TEXT, BOTH, RECORD, 0, OF_RUN(run_id)},
    {"scene", TEXT, BOTH, RECORD, 0, OF_RUN(scene)},
    {"case", TEXT, BOTH, RECORD, 0, OF_RUN(case_name)},
    {"platform", TEXT, BOTH, RECORD, 0, OF_RUN(platform)},
    {"runtime", TEXT, BOTH, RECORD, 0, OF_RUN(runtime)},
    {"rank", NUMBER64, BOTH, RECORD, 0, OF_RUN(rank), .max = UINT32_MAX},
    {"round", NUMBER64, BOTH, RECORD, 0, OF_RUN(round), .max = UINT32_MAX},
    {"started_at", TEXT, BOTH, RECORD, 0, OF_RUN(started_at)},
    {.name = NULL}};

static const run_field kernel_fields[] = {
    {"func_id", FUNC_ID, BOTH, BOTH, BOTH, OF_KERNEL(func_id), .max = GBX_MAX_KERNELS - 1},
    {"name", TEXT, BOTH, BOTH, BOTH, OF_KERNEL(name)},
    {"core_type", CORE_TYPE, BOTH, RECORD, RECORD | OR_NULL, OF_KERNEL(core_type)},
    {"signature", SIGNATURE, BOTH, RECORD, 0, OF_KERNEL(declared)},
    {"arg_names", ARG_NAMES, BOTH, RECORD, 0, OF_KERNEL(arg_names)},
    /* Gathered from the entries of a manifest; no run writes this. */
    {"slot_names", SLOT_NAMES, 0, RECORD, 0, OF_KERNEL(slot_names)},
    {"object", COPY, RUN_JSON, RUN_JSON, 0, OF_KERNEL(object)},
    {"object_hash", COPY_HASH, RUN_JSON, RUN_JSON, RUN_JSON, OF_KERNEL(object_hash)},
    {"source", COPY, RUN_JSON, RUN_JSON, 0, OF_KERNEL(source)},
    {"origin", PATH, RUN_JSON, RUN_JSON, 0, OF_KERNEL(origin)},
    {"compile_flags", TEXT, RUN_JSON, RUN_JSON, 0, OF_KERNEL(compile_flags)},
    {"link_flags", TEXT, RUN_JSON, RUN_JSON, 0, OF_KERNEL(link_flags)},
    {.name = NULL}};

static const run_field argument_fields[] = {
    {"name", TEXT, RECORD, RECORD, 0, OF_ARGUMENT(name)},
    {"role", TEXT, RECORD, RECORD, RECORD, OF_ARGUMENT(role)},
    {.name = NULL}};

static const run_field totals_fields[] = {
    {"records", NUMBER64, RUN_JSON, 0, 0, OF_RUN(result.dump.records)},
    {"dispatches", NUMBER64, RUN_JSON, 0, 0, OF_RUN(result.dump.dispatches)},
    {"payload_bytes", NUMBER64, RUN_JSON, 0, 0, OF_RUN(result.dump.payload_bytes)},
    {"stored_bytes", NUMBER64, RUN_JSON, 0, 0, OF_RUN(result.dump.stored_bytes)},
    {"dropped", NUMBER64, RUN_JSON, 0, 0, OF_RUN(result.dump.dropped)},
    {"skipped", NUMBER64, RUN_JSON, 0, 0, OF_RUN(result.dump.skipped)},
    {"stall_ns", NUMBER64, RUN_JSON, 0, 0, OF_RUN(result.dump.stall_ns)},
    {.name = NULL}};

static const run_field result_fields[] = {
    {"status", TEXT, RUN_JSON, 0, 0, OF_RUN(result.status)},
    {"error", TEXT, RUN_JSON | ENDED, 0, 0, OF_RUN(result.error)},
    {"code", TEXT, RUN_JSON | ENDED, 0, 0, OF_RUN(result.code)},
    {"tasks", NUMBER64, RUN_JSON | ENDED, 0, 0, OF_RUN(result.tasks)},
    {"dispatches", NUMBER64, RUN_JSON | ENDED, 0, 0, OF_RUN(result.dispatches)},
    {"seconds", SECONDS, RUN_JSON | ENDED, 0, 0, OF_RUN(result.seconds)},
    {"dump", GROUP, RUN_JSON | ENDED, 0, 0, .fields = totals_fields},
    {.name = NULL}};

static const run_field run_fields[] = {
    {"schema_version", SCHEMA, RUN_JSON, RUN_JSON, RUN_JSON, .min = SCHEMA_VERSION,
     .max = SCHEMA_VERSION},
    {"generator", TEXT, BOTH, RECORD, RECORD | OR_NULL, OF_RUN(generator)},
    {"command", TEXT, RUN_JSON, 0, 0, OF_RUN(command)},
    {"run", GROUP, BOTH, RECORD, RECORD, .fields = identity_fields},
    {"device", TEXT, RUN_JSON, 0, 0, OF_RUN(device)},
    {"blocks", NUMBER32, RUN_JSON, RUN_JSON, 0, OF_RUN(blocks), .min = 1, .max = GBX_MAX_BLOCKS},
    {"threads", NUMBER32, RUN_JSON, 0, 0, OF_RUN(threads)},
    {"gm_bytes", NUMBER64, RUN_JSON, RUN_JSON, 0, OF_RUN(gm_bytes), .min = 1,
     .max = (int64_t)GBX_MAX_GM_BYTES},
    {"scene_path", PATH, RUN_JSON, RUN_JSON, 0, OF_RUN(scene_path)},
    {"dump_level", TEXT, BOTH, RECORD, 0, OF_RUN(dump_level)},
    {"has_args", FLAG, BOTH, RECORD, 0, OF_RUN(has_args)},
    {"filters", TEXTS, BOTH, RECORD, 0, OF_RUN(filters), .item_bytes = sizeof(char *),
     .max = INT64_MAX},
    {"kernels", LIST, BOTH, BOTH, RUN_JSON, OF_RUN(kernels), .fields = kernel_fields,
     .item_bytes = sizeof(gbx_run_kernel), .max = GBX_MAX_KERNELS},
    {"run_args", LIST, RECORD, RECORD, 0, OF_RUN(arguments), .fields = argument_fields,
     .item_bytes = sizeof(gbx_run_argument), .max = INT64_MAX},
    {"result", GROUP, RUN_JSON, 0, 0, .fields = result_fields},
    {.name = NULL}};

/* --- the struct --- */

void gbx_run_info_free(gbx_run_info *info) {
    for (size_t i = 0; info->kernels && i < info->kernel_count; ++i) {
        free(info->kernels[i].object);
        free(info->kernels[i].source);
    }
    free(info->filters);
    free(info->kernels);
    free(info->arguments);
    free(info->path);
    json_decref(info->document);
    memset(info, 0, sizeof *info);
}

const gbx_run_kernel *gbx_run_info_kernel(const gbx_run_info *info, uint32_t func_id) {
    for (size_t i = 0; i < info->kernel_count; ++i)
        if (info->kernels[i].func_id == func_id)
            return &info->kernels[i];
    return NULL;
}

const char *gbx_run_info_slot_name(const gbx_run_info *info, const uint32_t func_ids[3],
                                   uint32_t arg_index) {
    for (size_t i = 0; i < 3 && arg_index < GBX_RUN_KERNEL_SLOTS; ++i) {
        const gbx_run_kernel *kernel = gbx_run_info_kernel(info, func_ids[i]);
        if (kernel && kernel->slot_names[arg_index])
            return kernel->slot_names[arg_index];
    }
    return NULL;
}

void gbx_run_identity_make(gbx_run_identity *identity) {
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t seed[3] = {(int64_t)now.tv_sec * GBX_NS_PER_SECOND + now.tv_nsec, gbx_clock_ns(),
                       getpid()};
    snprintf(identity->run_id, sizeof identity->run_id, "%016" PRIx64,
             gbx_hash_bytes(seed, sizeof seed).low);
    gmtime_r(&now.tv_sec, &utc);
    strftime(identity->started_at, sizeof identity->started_at, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* --- writing --- */

/* Words between commas. */
static void put_words(gbx_json_writer *json, const char *key, const char *list) {
    gbx_json_key(json, key);
    gbx_json_begin_array_inline(json);
    while (list && *list) {
        size_t length = strcspn(list, ",");
        gbx_json_string_of(json, list, length);
        list += length + (list[length] == ',');
    }
    gbx_json_end_array(json);
}

static void put_texts(gbx_json_writer *json, const char *key, const char *const *texts,
                      size_t count) {
    gbx_json_key(json, key);
    gbx_json_begin_array(json);
    for (size_t i = 0; i < count; ++i)
        gbx_json_string(json, texts[i]);
    gbx_json_end_array(json);
}

/* An absolute path. */
static void put_path(gbx_json_writer *json, const char *key, const char *path) {
    char *absolute = path ? realpath(path, NULL) : NULL;
    gbx_json_put_string(json, key, absolute ? absolute : path);
    free(absolute);
}

static void put_copy_hash(gbx_json_writer *json, const char *key, const gbx_run_kernel *kernel) {
    char text[GBX_HASH_TEXT_BYTES];
    gbx_hash_format(kernel->object_hash, text);
    gbx_json_put_string(json, key, kernel->object ? text : NULL);
}

static void put_fields(gbx_json_writer *json, unsigned part, const run_field *field,
                       const void *base) {
    gbx_json_begin_object(json);
    for (; field->name; ++field) {
        const void *at = (const char *)base + field->offset;
        const char *const *text = at;
        const char *items;
        if (!(field->written & part) || ((field->written & ENDED) && !(part & ENDED)))
            continue;
        switch (field->kind) {
        case TEXT:
        case CORE_TYPE:
        case COPY:
            gbx_json_put_string(json, field->name, *text);
            break;
        case PATH:
            put_path(json, field->name, *text);
            break;
        case FUNC_ID:
        case NUMBER32:
            gbx_json_put_u64(json, field->name, *(const uint32_t *)at);
            break;
        case NUMBER64:
            gbx_json_put_u64(json, field->name, *(const uint64_t *)at);
            break;
        case SECONDS:
            gbx_json_put_f64(json, field->name, *(const double *)at);
            break;
        case FLAG:
            gbx_json_put_bool(json, field->name, *(const bool *)at);
            break;
        case TEXTS:
            put_texts(json, field->name, *(const char ***)at, count_of(at));
            break;
        case GROUP:
            gbx_json_key(json, field->name);
            put_fields(json, part, field->fields, base);
            break;
        case LIST:
            gbx_json_key(json, field->name);
            gbx_json_begin_array(json);
            memcpy(&items, at, sizeof items);
            for (size_t i = 0; i < count_of(at); ++i)
                put_fields(json, part, field->fields, items + i * field->item_bytes);
            gbx_json_end_array(json);
            break;
        case SCHEMA:
            gbx_json_put_u64(json, field->name, SCHEMA_VERSION);
            break;
        case ARG_NAMES:
            if (*text)
                put_words(json, field->name, *text);
            break;
        case SIGNATURE:
            put_words(json, field->name, *text);
            break;
        case COPY_HASH:
            put_copy_hash(json, field->name, base);
            break;
        case SLOT_NAMES:
            break;
        }
    }
    gbx_json_end_object(json);
}

/* Closes the stream, too. */
static gbx_status write_all(const gbx_run_info *info, unsigned part, FILE *to,
                            gbx_json_style style) {
    gbx_json_writer json;
    gbx_json_start(&json, gbx_json_to_stream, to, style);
    put_fields(&json, part, run_fields, info);
    gbx_status status = gbx_json_finish(&json);
    if (fclose(to) != 0 && !status)
        status = gbx_fail(GBX_IO, "describing a run: %s", strerror(errno));
    return status;
}

gbx_status gbx_run_record_make(const gbx_run_info *info, char **out_text) {
    size_t size;
    *out_text = NULL;
    FILE *to = open_memstream(out_text, &size);
    if (!to)
        return gbx_fail_memory("describing a run");
    gbx_status status = write_all(info, RECORD, to, GBX_JSON_ONE_LINE);
    if (status) {
        free(*out_text);
        *out_text = NULL;
    }
    return status;
}

gbx_status gbx_run_file_write(const gbx_run_info *info, const char *directory) {
    bool is_running = strcmp(info->result.status, "running") == 0;
    char temporary[PATH_BYTES];
    char path[PATH_BYTES];
    snprintf(temporary, sizeof temporary, "%s/run.json.tmp", directory);
    snprintf(path, sizeof path, "%s/run.json", directory);
    FILE *to = fopen(temporary, "we");
    if (!to)
        return gbx_fail(GBX_IO, "creating %s: %s", temporary, strerror(errno));
    gbx_status status = gbx_status_annotate(
        write_all(info, is_running ? RUN_JSON : RUN_JSON | ENDED, to, GBX_JSON_PRETTY),
        "writing %s", path);
    if (!status && rename(temporary, path) != 0)
        status = gbx_fail(GBX_IO, "putting %s in place: %s", path, strerror(errno));
    if (status)
        unlink(temporary);
    return status;
}

/* --- reading --- */

/* What is read, and into what. */
typedef struct reading {
    unsigned part;
    const char *directory; /* of the dump; NULL for a RUN record */
    gbx_run_info *info;
} reading;

static gbx_status read_signature(const gbx_cursor *array, gbx_run_kernel *kernel) {
    GBX_TRY(gbx_cursor_count(array, &kernel->signature_count));
    if (kernel->signature_count > GBX_RUN_KERNEL_SLOTS)
        return gbx_cursor_fail(array, "has %zu arguments, more than %d", kernel->signature_count,
                               GBX_RUN_KERNEL_SLOTS);
    for (size_t i = 0; i < kernel->signature_count; ++i) {
        gbx_cursor word;
        const char *text;
        gbx_parameter ignored;
        GBX_TRY(gbx_cursor_element(array, i, &word));
        GBX_TRY(gbx_cursor_string(&word, &text));
        if (gbx_parameter_read(text, strlen(text), &ignored) != GBX_PARAMETER_OK)
            return gbx_cursor_fail(&word, "expected " GBX_SIGNATURE_WORDS);
        kernel->signature[i] = text;
    }
    return NULL;
}

/* For a word of a signature that was read. */
static bool is_scalar(const char *word) {
    return gbx_parameter_kind(word) == GBX_PARAMETER_SCALAR;
}

/* Names by slot, or in the order of the signature. Slots have tensors first, then scalars. */
static gbx_status read_names(const gbx_cursor *array, bool is_by_slot, gbx_run_kernel *kernel) {
    size_t count = 0;
    size_t scalar_slot = 0;
    size_t tensor_slot = 0;
    GBX_TRY(gbx_cursor_count(array, &count));
    if (is_by_slot && count > GBX_RUN_KERNEL_SLOTS)
        return gbx_cursor_fail(array, "has %zu names, more than %d", count, GBX_RUN_KERNEL_SLOTS);
    if (!is_by_slot && count > kernel->signature_count)
        return gbx_cursor_fail(array, "has %zu names for a signature of %zu", count,
                               kernel->signature_count);
    for (size_t i = 0; i < kernel->signature_count; ++i)
        scalar_slot += !is_scalar(kernel->signature[i]);
    for (size_t i = 0; i < count; ++i) {
        gbx_cursor name;
        size_t slot = is_by_slot                        ? i
                      : is_scalar(kernel->signature[i]) ? scalar_slot++
                                                        : tensor_slot++;
        GBX_TRY(gbx_cursor_element(array, i, &name));
        if (!json_is_null(name.value))
            GBX_TRY(gbx_cursor_string(&name, &kernel->slot_names[slot]));
    }
    return NULL;
}

static bool leaves_directory(const char *path) {
    for (const char *part = path; *part;) {
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.')
            return true;
        part += length + (part[length] == '/');
    }
    return path[0] == '/';
}

static gbx_status read_copy(const reading *r, const gbx_cursor *member, char **out_path) {
    const char *text;
    GBX_TRY(gbx_cursor_string(member, &text));
    if (!text[0] || leaves_directory(text))
        return gbx_cursor_fail(member, "\"%s\" is not the path of a file inside the dump", text);
    if (asprintf(out_path, "%s/%s", r->directory, text) >= 0)
        return NULL;
    *out_path = NULL;
    return gbx_fail_memory("reading %s", r->info->path);
}

/* 32 hexadecimal digits, the high half first. */
static gbx_status read_hash(const gbx_cursor *member, gbx_hash128 *out_hash) {
    const char *text;
    GBX_TRY(gbx_cursor_string(member, &text));
    if (strlen(text) != 32 || strspn(text, "0123456789abcdef") != 32)
        return gbx_cursor_fail(member, "\"%s\" is not a hash of 32 hexadecimal digits", text);
    sscanf(text, "%16" SCNx64 "%16" SCNx64, &out_hash->high, &out_hash->low);
    return NULL;
}

/* Only a RUN record may repeat a kernel, because the manifest of another tool may. */
static gbx_status check_func_id(const reading *r, const gbx_cursor *member,
                                const gbx_run_kernel *kernel) {
    for (const gbx_run_kernel *other = r->info->kernels; other < kernel && r->part == RUN_JSON;
         ++other)
        if (other->func_id == kernel->func_id)
            return gbx_cursor_fail(
                member, "%" PRIu32 " is already the func_id of an earlier kernel", kernel->func_id);
    return NULL;
}

static gbx_status read_fields(const reading *r, const gbx_cursor *object, const run_field *field,
                              void *base);

static gbx_status read_list(const reading *r, const gbx_cursor *array, const run_field *field,
                            void *at) {
    size_t count = 0;
    GBX_TRY(gbx_cursor_count(array, &count));
    if (count > (size_t)field->max)
        return gbx_cursor_fail(array, "has %zu %s, more than %" PRId64, count, field->name,
                               field->max);
    char *items = calloc(count + 1, field->item_bytes);
    if (!items)
        return gbx_fail_memory("reading the %zu %s of a run", count, field->name);
    memcpy(at, &items, sizeof items);
    memcpy((char *)at + sizeof items, &count, sizeof count);
    for (size_t i = 0; i < count; ++i) {
        gbx_cursor element;
        char *item = items + i * field->item_bytes;
        GBX_TRY(gbx_cursor_element(array, i, &element));
        GBX_TRY(field->kind == TEXTS ? gbx_cursor_string(&element, (const char **)(void *)item)
                                     : read_fields(r, &element, field->fields, item));
    }
    return NULL;
}

static gbx_status read_field(const reading *r, const gbx_cursor *member, const run_field *field,
                             void *base) {
    static const char *const core_types[] = {"aic", "aiv"};
    void *at = (char *)base + field->offset;
    size_t choice = 0;
    int64_t number = 0;
    switch (field->kind) {
    case TEXT:
    case PATH:
        return gbx_cursor_string(member, at);
    case NUMBER64:
        return gbx_cursor_integer(member, field->min, field->max, at);
    case NUMBER32:
    case FUNC_ID:
        GBX_TRY(gbx_cursor_integer(member, field->min, field->max, &number));
        *(uint32_t *)at = (uint32_t)number;
        return field->kind == FUNC_ID ? check_func_id(r, member, base) : NULL;
    case FLAG:
        return gbx_cursor_bool(member, at);
    case GROUP:
        return read_fields(r, member, field->fields, base);
    case TEXTS:
    case LIST:
        return read_list(r, member, field, at);
    case SCHEMA:
        return gbx_cursor_integer(member, field->min, field->max, &number);
    case CORE_TYPE:
        GBX_TRY(gbx_cursor_choice(member, core_types, sizeof core_types / sizeof core_types[0],
                                  &choice));
        *(const char **)at = core_types[choice];
        return NULL;
    case SIGNATURE:
        return read_signature(member, base);
    case ARG_NAMES:
    case SLOT_NAMES:
        return read_names(member, field->kind == SLOT_NAMES, base);
    case COPY:
        return read_copy(r, member, at);
    case COPY_HASH:
        return read_hash(member, at);
    case SECONDS:
        break;
    }
    return NULL;
}

static gbx_status read_fields(const reading *r, const gbx_cursor *object, const run_field *field,
                              void *base) {
    for (; field->name; ++field) {
        gbx_cursor member;
        bool is_needed = field->needed & r->part;
        bool is_of_no_copy = field->kind == COPY_HASH && !((const gbx_run_kernel *)base)->object;
        if (!(field->read & r->part) || is_of_no_copy)
            continue;
        GBX_TRY(is_needed ? gbx_cursor_member(object, field->name, &member)
                          : gbx_cursor_optional(object, field->name, &member));
        bool is_null = !member.value || ((field->needed & OR_NULL) && json_is_null(member.value));
        if (!is_null)
            GBX_TRY(read_field(r, &member, field, base));
    }
    return NULL;
}

/* Consumes the document of `info`; frees all of `info` on failure. */
static gbx_status read_document(const reading *r, const char *name) {
    gbx_cursor root = gbx_cursor_root(r->info->document, name);
    gbx_status status = read_fields(r, &root, run_fields, r->info);
    if (status)
        gbx_run_info_free(r->info);
    return status;
}

gbx_status gbx_run_info_parse(const char *name, const char *text, size_t size,
                              gbx_run_info *out_info) {
    *out_info = (gbx_run_info){0};
    GBX_TRY(gbx_json_parse(name, text, size, &out_info->document));
    return read_document(&(reading){RECORD, NULL, out_info}, name);
}

gbx_status gbx_run_info_load(const char *directory, gbx_run_info *out_info) {
    *out_info = (gbx_run_info){0};
    if (asprintf(&out_info->path, "%s/run.json", directory) < 0) {
        out_info->path = NULL;
        return gbx_fail_memory("reading run.json of %s", directory);
    }
    gbx_status status = gbx_json_load(out_info->path, MAX_FILE_BYTES, &out_info->document);
    if (status) {
        gbx_run_info_free(out_info);
        return status;
    }
    return read_document(&(reading){RUN_JSON, directory, out_info}, out_info->path);
}
