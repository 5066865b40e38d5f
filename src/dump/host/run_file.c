#include "dump/host/run_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "text/json_writer.h"

static const char *const level_names[] = {NULL, "full", "partial", "hybrid", "stats"};

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

/* --- what both have --- */

static void put_run(gbx_json_writer *json, const gbx_dump_session_config *config,
                    const gbx_run_identity *identity) {
    const gbx_dump_about *about = &config->options->about;
    gbx_json_key(json, "run");
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "run_id", identity->run_id);
    gbx_json_put_string(json, "scene", about->scene);
    gbx_json_put_string(json, "case", about->case_name);
    gbx_json_put_string(json, "platform", config->hal->ops->name);
    gbx_json_put_string(json, "runtime", config->runtime);
    gbx_json_put_u64(json, "rank", about->rank);
    gbx_json_put_u64(json, "round", about->round);
    gbx_json_put_string(json, "started_at", identity->started_at);
    gbx_json_end_object(json);
}

static void put_options(gbx_json_writer *json, const gbx_dump_session_config *config) {
    gbx_json_put_string(json, "dump_level", level_names[config->level]);
    gbx_json_put_bool(json, "has_args", config->has_args);
    gbx_json_key(json, "filters");
    gbx_json_begin_array(json);
    for (size_t i = 0; i < config->options->filter_count; ++i)
        gbx_json_string(json, config->options->filters[i]);
    gbx_json_end_array(json);
}

/* Words between commas. */
static void put_list(gbx_json_writer *json, const char *key, const char *list) {
    gbx_json_key(json, key);
    gbx_json_begin_array_inline(json);
    while (list && *list) {
        size_t length = strcspn(list, ",");
        gbx_json_string_of(json, list, length);
        list += length + (list[length] == ',');
    }
    gbx_json_end_array(json);
}

static void put_kernel(gbx_json_writer *json, const gbx_dump_kernel *kernel) {
    gbx_json_put_u64(json, "func_id", kernel->func_id);
    gbx_json_put_string(json, "name", kernel->name);
    gbx_json_put_string(json, "core_type", kernel->core == GBX_CORE_AIC ? "aic" : "aiv");
    put_list(json, "signature", kernel->signature);
    if (kernel->arg_names)
        put_list(json, "arg_names", kernel->arg_names);
}

/* --- the RUN record --- */

typedef struct text_sink {
    char *text;
    size_t length;
} text_sink;

static gbx_status add_text(void *context, const void *bytes, size_t size) {
    text_sink *sink = context;
    char *grown = realloc(sink->text, sink->length + size + 1);
    if (!grown)
        return gbx_fail(GBX_EXHAUSTED, "describing a run: the host is out of memory");
    memcpy(grown + sink->length, bytes, size);
    sink->text = grown;
    sink->length += size;
    grown[sink->length] = '\0';
    return NULL;
}

static void put_run_args(gbx_json_writer *json, const gbx_dump_session_config *config) {
    gbx_json_key(json, "run_args");
    gbx_json_begin_array(json);
    for (size_t i = 0; i < config->run_arg_count; ++i) {
        gbx_json_begin_object(json);
        gbx_json_put_string(json, "name", config->run_args[i].name);
        gbx_json_put_string(json, "role", config->run_args[i].role);
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
}

gbx_status gbx_run_record_make(const gbx_dump_session_config *config,
                               const gbx_run_identity *identity, char **out_text) {
    text_sink sink = {NULL, 0};
    gbx_json_writer *json = malloc(sizeof *json);
    *out_text = NULL;
    if (!json)
        return gbx_fail(GBX_EXHAUSTED, "describing a run: the host is out of memory");
    gbx_json_start(json, add_text, &sink, GBX_JSON_ONE_LINE);
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "generator", "glassbox " GBX_VERSION);
    put_run(json, config, identity);
    put_options(json, config);
    gbx_json_key(json, "kernels");
    gbx_json_begin_array(json);
    for (size_t i = 0; i < config->kernel_count; ++i) {
        gbx_json_begin_object(json);
        put_kernel(json, &config->kernels[i]);
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
    put_run_args(json, config);
    gbx_json_end_object(json);
    gbx_status status = gbx_json_finish(json);
    free(json);
    if (status)
        free(sink.text);
    else
        *out_text = sink.text;
    return status;
}

enum { PATH_BYTES = 4096, COPY_ROOM = GBX_KERNEL_COPY_BYTES + 16 };

/* --- run.json --- */

static void put_copy(gbx_json_writer *json, const char *key, const char *name) {
    char path[COPY_ROOM];
    snprintf(path, sizeof path, "kernels/%s", name);
    gbx_json_put_string(json, key, name[0] ? path : NULL);
}

static void put_hash(gbx_json_writer *json, const char *key, const gbx_hash128 *hash) {
    char text[GBX_HASH_TEXT_BYTES];
    if (hash)
        gbx_hash_format(*hash, text);
    gbx_json_put_string(json, key, hash ? text : NULL);
}

/* A path that means the same in any working directory. */
static void put_absolute(gbx_json_writer *json, const char *key, const char *path) {
    char *absolute = path ? realpath(path, NULL) : NULL;
    gbx_json_put_string(json, key, absolute ? absolute : path);
    free(absolute);
}

static void put_totals(gbx_json_writer *json, const gbx_dump_totals *totals) {
    gbx_json_key(json, "dump");
    gbx_json_begin_object(json);
    gbx_json_put_u64(json, "records", totals->records);
    gbx_json_put_u64(json, "dispatches", totals->dispatches);
    gbx_json_put_u64(json, "payload_bytes", totals->payload_bytes);
    gbx_json_put_u64(json, "stored_bytes", totals->stored_bytes);
    gbx_json_put_u64(json, "dropped", totals->dropped);
    gbx_json_put_u64(json, "skipped", totals->skipped);
    gbx_json_put_u64(json, "stall_ns", totals->stall_ns);
    gbx_json_end_object(json);
}

static void put_result(gbx_json_writer *json, const gbx_dump_ending *ending,
                       const gbx_dump_totals *totals) {
    gbx_json_key(json, "result");
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "status", !ending ? "running" : ending->error ? "failed" : "ok");
    if (ending) {
        gbx_json_put_string(json, "error", ending->error);
        if (ending->error)
            gbx_json_put_string(json, "code", gbx_code_name((gbx_code)ending->outcome.code));
        gbx_json_put_u64(json, "tasks", ending->tasks);
        gbx_json_put_u64(json, "dispatches", ending->dispatches);
        gbx_json_put_f64(json, "seconds", (double)ending->device_ns * 1e-9);
        put_totals(json, totals);
    }
    gbx_json_end_object(json);
}

static void put_document(gbx_json_writer *json, const gbx_dump_session_config *config,
                         const gbx_run_identity *identity, const gbx_kernel_copy *copies,
                         const gbx_dump_ending *ending, const gbx_dump_totals *totals) {
    gbx_hal_caps caps;
    config->hal->ops->caps(config->hal, &caps);
    gbx_json_begin_object(json);
    gbx_json_put_u64(json, "schema_version", 1);
    gbx_json_put_string(json, "generator", "glassbox " GBX_VERSION);
    gbx_json_put_string(json, "command", config->options->about.command);
    put_run(json, config, identity);
    gbx_json_put_string(json, "device", config->device);
    gbx_json_put_u64(json, "blocks", config->blocks);
    gbx_json_put_u64(json, "threads", config->aicpu_threads);
    gbx_json_put_u64(json, "gm_bytes", caps.gm_bytes);
    put_absolute(json, "scene_path", config->options->about.scene_path);
    put_options(json, config);
    gbx_json_key(json, "kernels");
    gbx_json_begin_array(json);
    for (size_t i = 0; i < config->kernel_count; ++i) {
        gbx_json_begin_object(json);
        put_kernel(json, &config->kernels[i]);
        put_copy(json, "object", copies[i].object);
        put_hash(json, "object_hash", copies[i].object[0] ? &copies[i].object_hash : NULL);
        put_copy(json, "source", copies[i].source);
        put_absolute(json, "origin", config->kernels[i].origin);
        gbx_json_put_string(json, "compile_flags", config->kernels[i].compile_flags);
        gbx_json_put_string(json, "link_flags", config->kernels[i].link_flags);
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
    put_result(json, ending, totals);
    gbx_json_end_object(json);
}

static gbx_status write_text(void *context, const void *bytes, size_t size) {
    if (fwrite(bytes, 1, size, context) != size)
        return gbx_fail(GBX_IO, "writing run.json: %s", strerror(errno));
    return NULL;
}

static gbx_status write_file(const char *path, const gbx_dump_session_config *config,
                             const gbx_run_identity *identity, const gbx_kernel_copy *copies,
                             const gbx_dump_ending *ending, const gbx_dump_totals *totals) {
    FILE *file = fopen(path, "we");
    if (!file)
        return gbx_fail(GBX_IO, "making %s: %s", path, strerror(errno));
    gbx_json_writer *json = malloc(sizeof *json);
    gbx_status status = NULL;
    if (json) {
        gbx_json_start(json, write_text, file, GBX_JSON_PRETTY);
        put_document(json, config, identity, copies, ending, totals);
        status = gbx_json_finish(json);
    } else {
        status = gbx_fail(GBX_EXHAUSTED, "writing %s: the host is out of memory", path);
    }
    free(json);
    if (fclose(file) != 0 && !status)
        status = gbx_fail(GBX_IO, "writing %s: %s", path, strerror(errno));
    return status;
}

gbx_status gbx_run_file_write(const gbx_dump_session_config *config,
                              const gbx_run_identity *identity, const gbx_kernel_copy *copies,
                              const gbx_dump_ending *ending, const gbx_dump_totals *totals) {
    char temporary[PATH_BYTES];
    char path[PATH_BYTES];
    snprintf(temporary, sizeof temporary, "%s/run.json.tmp", config->options->directory);
    snprintf(path, sizeof path, "%s/run.json", config->options->directory);
    gbx_status status = write_file(temporary, config, identity, copies, ending, totals);
    if (!status && rename(temporary, path) != 0)
        status = gbx_fail(GBX_IO, "putting %s in place: %s", path, strerror(errno));
    if (status)
        unlink(temporary);
    return status;
}
