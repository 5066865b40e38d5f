#include <stdio.h>
#include <stdlib.h>

#include "cli/internal.h"
#include "store/dump_path.h"
#include "store/recover.h"

static error_t parse(int key, char *argument, struct argp_state *state) {
    const char **dump = state->input;
    if (key == ARGP_KEY_NO_ARGS) {
        argp_error(state, "which dump? The directory of a run that was killed is expected");
        return EINVAL;
    }
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    gbx_option_dump(state, dump, argument, "recovered");
    return 0;
}

static const struct argp parser = {
    .parser = parse,
    .args_doc = "DUMP",
    .doc = "Makes the dump of a run that was killed whole: keeps all records whose block of the "
           "journal was written, ends the journal, and writes the manifests that the run could "
           "not, with complete: false. A broken end of the journal is kept in a file beside it. "
           "DUMP is a dump directory, its parent or its tensor_dump.\v"
           "exit codes: 0 recovered, or there was nothing to recover; 1 the payload of some "
           "records is missing, or records that the manifest has; 2 usage, no dump that can be "
           "read, one that needs a newer glassbox, or its run is going on.\n\n"
           "examples:\n  glassbox recover outputs/latest\n"
           "  glassbox recover outputs/vector_example_default",
};

static void print_done(const gbx_recovery *recovery) {
    char count[GBX_COUNT_TEXT_BYTES];
    if (recovery->cut_bytes > 0)
        printf("  cut %s bytes off the journal (%s), kept in %s\n",
               gbx_text_count(recovery->cut_bytes, count), recovery->stop_text,
               recovery->tail_path);
    if (recovery->has_ended)
        printf("  ended the journal\n");
    if (recovery->has_tensor_manifest)
        printf("  wrote tensor_dump.json\n");
    if (recovery->has_args_manifests)
        printf("  wrote args_dump.json and kernel_args_dump.json\n");
    if (recovery->kept_entries > recovery->records)
        printf("  kept tensor_dump.json: it has %s entries, more than the journal; with "
               "tensor_dump.rec moved away, the dump is read from it\n",
               gbx_text_count(recovery->kept_entries, count));
    else if (recovery->kept_entries > 0)
        printf("  kept tensor_dump.json: this version does not know all records of the journal\n");
    if (recovery->has_kept_args)
        printf(
            "  kept args_dump.json and kernel_args_dump.json: they have more than the journal\n");
    if (recovery->newer_records > 0)
        printf("  left %s record%s of types newer than this version as they are\n",
               gbx_text_count(recovery->newer_records, count),
               gbx_text_plural(recovery->newer_records));
    if (recovery->removed_files > 0)
        printf("  removed %s temporary file%s\n", gbx_text_count(recovery->removed_files, count),
               gbx_text_plural(recovery->removed_files));
}

static void print_recovery(const gbx_recovery *recovery, const char *directory) {
    char count[GBX_COUNT_TEXT_BYTES], tasks[GBX_COUNT_TEXT_BYTES], bytes[GBX_COUNT_TEXT_BYTES];
    printf("%s %s: %s record%s of %s task%s, %s of payload",
           recovery->was_whole ? "nothing to recover in" : "recovered", directory,
           gbx_text_count(recovery->records, count), gbx_text_plural(recovery->records),
           gbx_text_count(recovery->tasks, tasks), gbx_text_plural(recovery->tasks),
           gbx_text_bytes(recovery->payload_bytes, bytes));
    if (recovery->dispatches > 0)
        printf(", %s dispatches", gbx_text_count(recovery->dispatches, count));
    printf("; %s\n",
           recovery->is_complete ? "the run had ended by itself" : "the run did not end by itself");
    print_done(recovery);
    if (recovery->findings.count > 0)
        printf("the payload of %s record%s is missing:\n",
               gbx_text_count(recovery->findings.count, count),
               gbx_text_plural(recovery->findings.count));
    gbx_text_findings(&recovery->findings, "; glassbox verify --json lists all");
    if (!recovery->was_whole)
        printf("next: glassbox verify %s\n", directory);
}

static gbx_status recover(const char *directory, int *out_exit_code) {
    gbx_recovery recovery;
    gbx_progress *progress = gbx_progress_start();
    gbx_progress_phase(progress, NULL, "recovering");
    gbx_status status = gbx_dump_recover(directory, &recovery);
    gbx_progress_stop(progress);
    GBX_TRY(status);
    print_recovery(&recovery, directory);
    bool has_lost = recovery.findings.count > 0 || recovery.kept_entries > recovery.records;
    *out_exit_code = has_lost ? GBX_EXIT_DIFFERS : GBX_EXIT_OK;
    gbx_recovery_free(&recovery);
    return NULL;
}

int gbx_command_recover(int argc, char **argv) {
    const char *dump = NULL;
    gbx_command_parse(&parser, "recover", argc, argv, &dump);
    char *directory;
    int exit_code = GBX_EXIT_OK;
    gbx_status status = gbx_dump_path_find(dump, &directory);
    if (!status)
        status = recover(directory, &exit_code);
    free(directory);
    bool has_failed = status != NULL;
    exit_code = gbx_command_end("recover", status, exit_code);
    return has_failed ? GBX_EXIT_USAGE : exit_code;
}
