/* The verdict of a diagnosis as a document: diagnosis.json, and what --json prints. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/memory.h"
#include "report/party.h"
#include "report/reports.h"

enum { SCHEMA_VERSION = 1 };

static bool has_kernel(const gbx_diagnosis_finding *f) {
    return f->task != GBX_DIAGNOSIS_NOBODY;
}

/* "softmax", "matmul+add" */
static const char *kernel_of(const gbx_reporting *r, const gbx_diagnosis_finding *f) {
    gbx_record_task task = {0};
    memcpy(task.func_ids, f->func_ids, sizeof task.func_ids);
    return gbx_text_kernel(&r->sink->texts, r->dump->reader, &task);
}

/* By which a document can be compared with the dump that it lies in. */
static gbx_status hash_journal(const gbx_reader *reader, char out_text[GBX_HASH_TEXT_BYTES]) {
    enum { PIECE_BYTES = 1 << 20 };
    const char *path = gbx_reader_get_origin(reader)->records_path;
    gbx_hash_state state;
    unsigned char *piece = malloc(PIECE_BYTES);
    int fd = open(path, O_RDONLY | O_CLOEXEC), error = fd < 0 ? errno : 0;
    size_t size = PIECE_BYTES;
    gbx_hash_begin(&state);
    while (piece && !error && size == PIECE_BYTES) {
        error = gbx_read_all(fd, piece, PIECE_BYTES, &size);
        gbx_hash_update(&state, piece, size);
    }
    gbx_hash_format(gbx_hash_end(&state), out_text);
    if (fd >= 0)
        close(fd);
    free(piece);
    if (error)
        return gbx_fail(GBX_IO, "reading %s: %s", path, strerror(error));
    return piece ? NULL : gbx_fail_memory("reading %s", path);
}

static gbx_status put_dump(const gbx_reporting *r) {
    gbx_json_writer *json = &r->sink->json;
    const gbx_reader_totals *totals = gbx_reader_get_totals(r->dump->reader);
    char hash[GBX_HASH_TEXT_BYTES];
    GBX_TRY(hash_journal(r->dump->reader, hash));
    gbx_json_key(json, "dump");
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "run_id", gbx_reader_run(r->dump->reader)->run_id);
    gbx_json_put_u64(json, "records", totals->records + totals->in_flight);
    gbx_json_put_string(json, "hash", hash);
    gbx_json_end_object(json);
    return NULL;
}

static void put_numbers(gbx_json_writer *json, const char *key, const uint64_t *numbers,
                        size_t count) {
    gbx_json_key(json, key);
    gbx_json_begin_array_inline(json);
    for (size_t i = 0; i < count; ++i)
        gbx_json_u64(json, numbers[i]);
    gbx_json_end_array(json);
}

static void put_number(gbx_json_writer *json, const char *key, bool is_there, uint64_t number) {
    if (is_there)
        gbx_json_put_u64(json, key, number);
    else
        gbx_json_put_null(json, key);
}

static void put_element(gbx_json_writer *json, const gbx_diagnosis_finding *f) {
    int64_t index[GBX_MAX_DIMS];
    if (f->element == GBX_NO_ELEMENT) {
        gbx_json_put_null(json, "element");
        return;
    }
    gbx_compare_index(&f->tensor, f->element, index);
    gbx_json_key(json, "element");
    gbx_json_begin_array_inline(json);
    for (uint32_t i = 0; i < f->tensor.ndims; ++i)
        gbx_json_i64(json, index[i]);
    gbx_json_end_array(json);
}

static void put_blocks(gbx_json_writer *json, const gbx_diagnosis_finding *f) {
    gbx_json_key(json, "blocks");
    gbx_json_begin_array_inline(json);
    for (uint32_t i = 0; i < f->block_count; ++i) {
        gbx_json_begin_object_inline(json);
        gbx_json_put_u64(json, "block_idx", f->blocks[i].block_idx);
        gbx_json_put_string(json, "subtask", gbx_name_of(&gbx_subtasks, f->blocks[i].subtask));
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
}

static gbx_status put_evidence(const gbx_reporting *r, const gbx_diagnosis *d,
                               const gbx_diagnosis_finding *f) {
    gbx_json_writer *json = &r->sink->json;
    const char *text;
    gbx_json_key(json, "evidence");
    gbx_json_begin_array(json);
    for (size_t i = 1; i < f->clue_count; ++i) {
        GBX_TRY(gbx_diagnosis_say_clue(r, d, &f->clues[i], &text));
        gbx_json_string(json, text);
    }
    gbx_json_end_array(json);
    return NULL;
}

static void put_source(gbx_json_writer *json, const gbx_diagnosis *d,
                       const gbx_diagnosis_finding *f) {
    const gbx_replay_task *task;
    const gbx_sanitize_finding *found = gbx_diagnosis_line_of(d, f, &task);
    if (!found && !f->variable_file) {
        gbx_json_put_null(json, "source");
        return;
    }
    gbx_json_key(json, "source");
    gbx_json_begin_object_inline(json);
    gbx_json_put_string(json, "file", f->variable_file ? f->variable_file : found->at.file);
    gbx_json_put_u64(json, "line", f->variable_file ? f->variable_line : found->at.line);
    gbx_json_end_object(json);
}

static gbx_status put_finding(const gbx_reporting *r, const gbx_diagnosis *d,
                              const gbx_diagnosis_finding *f) {
    gbx_json_writer *json = &r->sink->json;
    const char *sentence;
    bool has_task = has_kernel(f), has_argument = f->slot != GBX_NO_ARGUMENT;
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "kind", gbx_name_of(&gbx_diagnosis_kinds, f->kind));
    GBX_TRY(gbx_diagnosis_say(r, d, f, &sentence));
    gbx_json_put_string(json, "sentence", sentence);
    put_number(json, "task_seq", has_task, f->task);
    if (has_task)
        gbx_json_put_hex_text(json, "task_id", f->task_id);
    else
        gbx_json_put_null(json, "task_id");
    gbx_json_put_string(json, "kernel", has_task ? kernel_of(r, f) : NULL);
    put_number(json, "arg_index", has_argument, f->slot);
    gbx_json_put_string(json, "arg_name", has_argument ? f->name : NULL);
    put_element(json, f);
    put_number(json, "bytes", f->bytes > 0, f->bytes);
    put_blocks(json, f);
    put_source(json, d, f);
    put_number(json, "other_task_seq", f->other != GBX_DIAGNOSIS_NOBODY, f->other);
    put_numbers(json, "tasks", f->tasks, f->task_count);
    GBX_TRY(put_evidence(r, d, f));
    put_numbers(json, "victims", f->victims, f->victim_count);
    gbx_json_put_bool(json, "victims_known", f->are_victims_known);
    put_number(json, "follows", f->follows >= 0, (uint64_t)f->follows);
    gbx_json_put_string(json, "command", gbx_text_diagnosis_command(r, d, f));
    gbx_json_end_object(json);
    return NULL;
}

static void put_asked(gbx_json_writer *json, const gbx_diagnosis *d) {
    gbx_json_key(json, "asked");
    gbx_json_begin_array(json);
    for (uint32_t i = 0; i < GBX_ASKED_QUESTION_COUNT; ++i) {
        gbx_json_begin_object_inline(json);
        gbx_json_put_string(json, "question", gbx_name_of(&gbx_diagnosis_questions, i));
        gbx_json_put_u64(json, "tasks", d->asked[i].tasks);
        gbx_json_put_u64(json, "findings", d->asked[i].findings);
        gbx_json_put_u64(json, "not_asked", d->asked[i].not_asked);
        gbx_json_put_string(json, "why", d->asked[i].why);
        gbx_json_put_string(json, "harmless", d->asked[i].harmless);
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
}

static gbx_status put_all(const gbx_reporting *r, const gbx_diagnosis *d) {
    gbx_json_writer *json = &r->sink->json;
    gbx_json_put_u64(json, "schema_version", SCHEMA_VERSION);
    gbx_json_put_string(json, "generator", "glassbox " GBX_VERSION);
    GBX_TRY(put_dump(r));
    put_number(json, "tasks", true, d->tasks);
    put_number(json, "left_out", true, d->tasks - d->chosen);
    gbx_json_key(json, "findings");
    gbx_json_begin_array(json);
    for (size_t i = 0; i < d->finding_count; ++i)
        GBX_TRY(put_finding(r, d, &d->findings[i]));
    gbx_json_end_array(json);
    put_asked(json, d);
    return NULL;
}

gbx_status gbx_diagnosis_put(const gbx_reporting *r, const gbx_diagnosis *d) {
    gbx_sink_json_begin(r->sink);
    return gbx_sink_json_end(r->sink, put_all(r, d));
}

/* --- the file --- */

static gbx_status write_document(const gbx_opened_dump *dump, const char *given,
                                 const gbx_diagnosis *diagnosis, FILE *to, const char *name) {
    gbx_sink *sink = malloc(sizeof *sink);
    if (!sink)
        return gbx_fail_memory("keeping the diagnosis");
    gbx_sink_open(sink, to);
    sink->name = name;
    gbx_status status = gbx_diagnosis_put(&(const gbx_reporting){sink, dump, given}, diagnosis);
    free(sink);
    return status;
}

gbx_status gbx_diagnosis_save(const gbx_opened_dump *dump, const char *given,
                              const gbx_diagnosis *diagnosis) {
    char *path = NULL, *temporary = NULL;
    gbx_status status = NULL;
    if (asprintf(&path, "%s/diagnosis.json", dump->directory) < 0)
        return gbx_fail_memory("keeping the diagnosis");
    if (asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        free(path);
        return gbx_fail_memory("keeping the diagnosis");
    }
    /* What a dump has there may be a link. */
    unlink(temporary);
    FILE *to = fopen(temporary, "wxe");
    if (to)
        status = write_document(dump, given, diagnosis, to, path);
    bool is_written = to && fclose(to) == 0 && !status && rename(temporary, path) == 0;
    if (!is_written && !status)
        status = gbx_fail(GBX_IO, "keeping the diagnosis in %s: %s", path, strerror(errno));
    if (!is_written)
        unlink(temporary);
    free(temporary);
    free(path);
    return status;
}
