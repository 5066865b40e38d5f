#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/internal.h"
#include "store/dump_path.h"
#include "store/verify/verify.h"

enum { KEY_JSON = 0x100, LINES_MAX = 20 }; /* no letter: the long name alone */

typedef struct command_line {
    const char *dump;
    bool as_json;
} command_line;

static error_t parse(int key, char *argument, struct argp_state *state) {
    command_line *line = state->input;
    if (key == KEY_JSON)
        line->as_json = true;
    else if (key == ARGP_KEY_ARG)
        gbx_option_dump(state, &line->dump, argument, "checked");
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp_option options[] = {
    {"json", KEY_JSON, NULL, 0, "Print one JSON document, with everything that is wrong", 0}, {0}};

static const struct argp parser = {
    .options = options,
    .parser = parse,
    .args_doc = "[DUMP]",
    .doc =
        "Computes every checksum, hash, size and count of a dump again and compares its "
        "manifests with its journal; of a dump without journal, what its manifest tells. DUMP "
        "is a dump directory, its parent or its tensor_dump (default: " GBX_DUMP_PATH_DEFAULT ").\v"
        "exit codes: 0 all that is there is right; 1 something is wrong; 2 usage, or there is "
        "no dump that can be read.\n\n"
        "examples:\n  glassbox verify\n  glassbox verify outputs/vector_example_default\n"
        "  glassbox verify outputs --json",
};

static void on_progress(void *context, const char *what, uint64_t done_bytes, uint64_t bytes) {
    gbx_progress *progress = context;
    char text[128], done[GBX_COUNT_TEXT_BYTES], all[GBX_COUNT_TEXT_BYTES];
    if (!progress)
        return;
    snprintf(text, sizeof text, "checking %s, %s of %s", what, gbx_text_bytes(done_bytes, done),
             gbx_text_bytes(bytes, all));
    gbx_progress_phase(progress, NULL, text);
}

/* --- text --- */

/* "44 records, 40.0 KiB of payload", and dispatches where there are some. */
static void print_contents(const gbx_verification *verification) {
    char records[GBX_COUNT_TEXT_BYTES], bytes[GBX_COUNT_TEXT_BYTES];
    uint64_t dispatches = gbx_reader_get_totals(verification->reader)->dispatches;
    printf("%s record%s, %s of payload", gbx_text_count(verification->records, records),
           gbx_text_plural(verification->records),
           gbx_text_bytes(verification->payload_bytes, bytes));
    if (dispatches > 0)
        printf(", %s dispatch%s", gbx_text_count(dispatches, records), dispatches == 1 ? "" : "es");
}

static void print_verdict(const gbx_verification *verification, const char *directory) {
    char count[GBX_COUNT_TEXT_BYTES];
    size_t wrong = verification->findings.count;
    if (wrong > 0)
        printf("bad: %s thing%s wrong with %s (", gbx_text_count(wrong, count),
               wrong == 1 ? " is" : "s are", directory);
    else
        printf("good: ");
    print_contents(verification);
    if (wrong > 0)
        printf(")\n");
    else
        printf(", every hash, size and count %s\n",
               gbx_reader_get_origin(verification->reader)->is_journal
                   ? "holds"
                   : "that the manifest tells holds");
}

/* Of a run that did not end well, and of what the dump has no bytes of. */
static void print_state(const gbx_verification *verification) {
    const gbx_reader *reader = verification->reader;
    char count[GBX_COUNT_TEXT_BYTES];
    if (!(gbx_reader_get_origin(reader)->known & GBX_KNOWN_STATUS))
        printf("the manifest does not tell how the run ended\n");
    else if (gbx_reader_end(reader) && !gbx_reader_is_complete(reader))
        gbx_terminal_quote("not complete: ", gbx_reader_end_text(reader), "\n");
    else if (gbx_reader_end(reader) && !gbx_reader_has_ended_well(reader))
        gbx_terminal_quote("the run failed: ", gbx_reader_end_text(reader), "\n");
    if (verification->unhashed_tensors > 0)
        printf("without payload: %s tensors, whose hashes cannot be computed again\n",
               gbx_text_count(verification->unhashed_tensors, count));
}

/* What a dump without journal leaves open. */
static void print_unchecked(const gbx_verification *verification) {
    const char *manifest = gbx_reader_get_origin(verification->reader)->records_path;
    char count[GBX_COUNT_TEXT_BYTES], beside[PATH_MAX];
    const char *slash = strrchr(manifest, '/');
    if (gbx_reader_get_origin(verification->reader)->is_journal)
        return;
    if (!gbx_reader_end(verification->reader))
        printf("not complete: the run was killed\n");
    printf("no journal: read from %s\n", manifest);
    snprintf(beside, sizeof beside, "%.*s/kernel_args_dump.json",
             slash ? (int)(slash - manifest) : 0, manifest);
    if (slash && access(beside, F_OK) == 0)
        printf("not read: kernel_args_dump.json and args_dump.json, which only a journal can be "
               "compared with\n");
    if (verification->unchecked_tensors > 0)
        printf("no hashes: the bytes of %s tensor%s were not checked\n",
               gbx_text_count(verification->unchecked_tensors, count),
               gbx_text_plural(verification->unchecked_tensors));
}

/* Losses may be of no task that is known. */
static bool has_task(const gbx_record *record) {
    return record->type != GBX_RECORD_LOSS || record->arg_index != GBX_ARG_NONE ||
           record->stage != GBX_STAGE_NONE;
}

static gbx_status print_loss(gbx_reader *reader, uint64_t position) {
    char count[GBX_COUNT_TEXT_BYTES];
    const gbx_record *record;
    GBX_TRY(gbx_reader_list_at(reader, GBX_LIST_LOSSES, position, &record));
    const gbx_record_loss *loss = (const gbx_record_loss *)(const void *)record;
    printf("lost: %s record%s", gbx_text_count(loss->count, count), gbx_text_plural(loss->count));
    if (has_task(record))
        printf(", the first of task %" PRIu64, record->task);
    if (record->arg_index != GBX_ARG_NONE)
        printf(", arg %u", record->arg_index);
    if (gbx_name_of(&gbx_stages, record->stage))
        printf(", %s", gbx_name_of(&gbx_stages, record->stage));
    printf(": %s\n", gbx_name_sentence(&gbx_loss_causes, loss->cause));
    return NULL;
}

static gbx_status print_skipped(gbx_reader *reader, uint64_t position) {
    const gbx_record *record;
    GBX_TRY(gbx_reader_list_at(reader, GBX_LIST_SKIPPED, position, &record));
    const gbx_record_skipped *skipped = (const gbx_record_skipped *)(const void *)record;
    const gbx_run_kernel *kernel = gbx_run_info_kernel(gbx_reader_run(reader), skipped->func_id);
    printf("skipped: task %" PRIu64, record->task);
    gbx_terminal_quote(", kernel ", kernel ? kernel->name : "unknown", "");
    if (record->arg_index != GBX_ARG_NONE)
        printf(", arg %u", record->arg_index);
    printf(": %s\n", gbx_name_sentence(&gbx_skip_reasons, skipped->reason));
    return NULL;
}

static gbx_status print_list(gbx_reader *reader, gbx_reader_list list, const char *what,
                             gbx_status (*print)(gbx_reader *, uint64_t)) {
    char text[GBX_COUNT_TEXT_BYTES];
    uint64_t count = gbx_reader_list_count(reader, list);
    for (uint64_t i = 0; i < count && i < LINES_MAX; ++i)
        GBX_TRY(print(reader, i));
    if (count > LINES_MAX)
        printf("%s: and %s more entries; --json lists all\n", what,
               gbx_text_count(count - LINES_MAX, text));
    return NULL;
}

static gbx_status print_text(const gbx_verification *verification, const char *directory) {
    print_verdict(verification, directory);
    gbx_text_findings(&verification->findings, "; --json lists all");
    print_state(verification);
    print_unchecked(verification);
    GBX_TRY(print_list(verification->reader, GBX_LIST_LOSSES, "lost", print_loss));
    GBX_TRY(print_list(verification->reader, GBX_LIST_SKIPPED, "skipped", print_skipped));
    uint64_t newer = gbx_reader_get_extent(verification->reader)->newer_count;
    char count[GBX_COUNT_TEXT_BYTES];
    if (newer > 0)
        printf("not checked: %s record%s of types newer than this version\n",
               gbx_text_count(newer, count), gbx_text_plural(newer));
    if (verification->can_be_recovered)
        printf("glassbox recover %s keeps what is readable and writes what is missing\n",
               directory);
    return NULL;
}

/* --- JSON --- */

/* The task and, where there is one, the argument that a record is about. */
static void write_place(gbx_json_writer *json, const gbx_record *record) {
    gbx_json_put_known(json, "task_seq", has_task(record), record->task);
    gbx_json_put_known(json, "arg_index", record->arg_index != GBX_ARG_NONE, record->arg_index);
}

static void write_loss(gbx_json_writer *json, const gbx_reader *reader, const gbx_record *record) {
    const gbx_record_loss *loss = (const gbx_record_loss *)(const void *)record;
    (void)reader;
    gbx_json_put_string(json, "stage", gbx_name_of(&gbx_stages, record->stage));
    gbx_json_put_string(json, "cause", gbx_name_of(&gbx_loss_causes, loss->cause));
    gbx_json_put_u64(json, "count", loss->count);
}

static void write_skipped(gbx_json_writer *json, const gbx_reader *reader,
                          const gbx_record *record) {
    const gbx_record_skipped *skipped = (const gbx_record_skipped *)(const void *)record;
    const gbx_run_kernel *kernel = gbx_run_info_kernel(gbx_reader_run(reader), skipped->func_id);
    gbx_json_put_string(json, "kernel", kernel ? kernel->name : NULL);
    gbx_json_put_string(json, "reason", gbx_name_sentence(&gbx_skip_reasons, skipped->reason));
}

static gbx_status
write_list(gbx_json_writer *json, gbx_reader *reader, gbx_reader_list list, const char *key,
           void (*write)(gbx_json_writer *, const gbx_reader *, const gbx_record *)) {
    gbx_json_key(json, key);
    gbx_json_begin_array(json);
    for (uint64_t i = 0; i < gbx_reader_list_count(reader, list); ++i) {
        const gbx_record *record;
        GBX_TRY(gbx_reader_list_at(reader, list, i, &record));
        gbx_json_begin_object_inline(json);
        write_place(json, record);
        write(json, reader, record);
        gbx_json_end_object(json);
    }
    gbx_json_end_array(json);
    return NULL;
}

static gbx_status print_json(const gbx_verification *verification, const char *directory) {
    static gbx_json_writer json; /* too large for a stack */
    gbx_reader *reader = verification->reader;
    const gbx_reader_totals *totals = gbx_reader_get_totals(reader);
    gbx_json_start_stdout(&json);
    gbx_json_put_string(&json, "dump", directory);
    gbx_json_put_bool(&json, "good", verification->findings.count == 0);
    gbx_json_put_bool(&json, "complete", gbx_reader_is_complete(reader));
    gbx_json_put_string(&json, "status",
                        gbx_reader_end(reader) ? gbx_reader_end_text(reader) : NULL);
    gbx_json_put_bool(&json, "can_be_recovered", verification->can_be_recovered);
    gbx_json_put_u64(&json, "records", verification->records);
    gbx_json_put_u64(&json, "bytes", verification->payload_bytes);
    gbx_json_put_u64(&json, "stored_bytes", totals->stored_bytes);
    gbx_json_put_u64(&json, "tasks", totals->tasks);
    gbx_json_put_u64(&json, "dispatches", totals->dispatches);
    gbx_json_put_u64(&json, "hashed_records", verification->hashed_records);
    gbx_json_put_u64(&json, "tensors_without_payload", verification->unhashed_tensors);
    gbx_json_put_u64(&json, "tensors_without_hash", verification->unchecked_tensors);
    gbx_json_put_u64(&json, "newer_records", gbx_reader_get_extent(reader)->newer_count);
    gbx_json_put_bool(&json, "has_journal", gbx_reader_get_origin(reader)->is_journal);
    gbx_json_put_findings(&json, "bad", &verification->findings);
    gbx_status status = write_list(&json, reader, GBX_LIST_LOSSES, "losses", write_loss);
    if (!status)
        status = write_list(&json, reader, GBX_LIST_SKIPPED, "skipped", write_skipped);
    return gbx_json_finish_stdout(&json, status);
}

/* --- the command --- */

static gbx_status verify(const command_line *line, const char *directory, int *out_exit_code) {
    gbx_verification verification;
    gbx_progress *progress = gbx_progress_start();
    gbx_verify_observer observer = {.context = progress, .on_progress = on_progress};
    gbx_progress_phase(progress, NULL, "reading the journal");
    gbx_status status = gbx_dump_verify(directory, &observer, &verification);
    gbx_progress_stop(progress);
    GBX_TRY(status);
    status =
        line->as_json ? print_json(&verification, directory) : print_text(&verification, directory);
    *out_exit_code = verification.findings.count > 0 ? GBX_EXIT_DIFFERS : GBX_EXIT_OK;
    gbx_verification_free(&verification);
    return status;
}

int gbx_command_verify(int argc, char **argv) {
    command_line line = {0};
    gbx_command_parse(&parser, "verify", argc, argv, &line);
    char *directory;
    int exit_code = GBX_EXIT_OK;
    gbx_status status = gbx_dump_path_find(line.dump, &directory);
    if (!status)
        status = verify(&line, directory, &exit_code);
    free(directory);
    return gbx_command_end("verify", status, exit_code);
}
