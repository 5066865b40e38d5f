#include <stdlib.h>

#include "cli/command.h"
#include "report/progress.h"
#include "report/reports.h"

typedef struct command_line {
    const char *dump;
    bool as_json;
} command_line;

static void on_progress(void *context, const char *what, uint64_t done_bytes, uint64_t bytes) {
    gbx_progress_phase(context, "checking", what);
    gbx_progress_count(context, done_bytes, bytes, NULL);
}

static gbx_status verify(const char *directory, gbx_verification *out_verification) {
    gbx_progress *progress = gbx_progress_start("reading the journal");
    const gbx_verify_observer observer = {progress, progress ? on_progress : NULL};
    gbx_status status = gbx_dump_verify(directory, &observer, out_verification);
    gbx_progress_stop(progress);
    return status;
}

static gbx_status run(void *context, gbx_invocation *invocation) {
    const command_line *line = context;
    gbx_verification verification;
    char *directory;
    GBX_TRY(gbx_dump_path_find(line->dump, &directory));
    gbx_status status = verify(directory, &verification);
    if (!status) {
        status = gbx_verification_print(invocation->sink, &verification, directory, line->as_json);
        invocation->exit_code = verification.findings.count > 0 ? GBX_EXIT_DIFFERS : GBX_EXIT_OK;
        gbx_verification_free(&verification);
    }
    free(directory);
    return status;
}

static const gbx_option options[] = {
    {"json", .help = "Print one JSON document, with all problems",
     .manual = "Its members: dump, good, complete, status, can_be_recovered, records, bytes, "
               "stored_bytes, tasks, dispatches, hashed_records, tensors_without_payload, "
               "tensors_without_hash, newer_records, has_journal, bad (objects with kind, index, "
               "task_seq, kernel, arg_index, stage, what, expected, got), losses and skipped.",
     GBX_STORE(FLAG, command_line, as_json)},
    {0}};

const gbx_command gbx_command_verify = {
    .name = "verify",
    .summary = "check every hash, size and count of a dump",
    GBX_TAKES_DUMP(command_line, dump),
    .groups = {{NULL, options, 0}},
    .description =
        "Compute every checksum, hash, size and count of a dump again, and compare its manifests "
        "with its journal. Without a journal, check what the manifest holds. " GBX_DUMP_IS ".",
    .examples = "glassbox verify\n"
                "glassbox verify outputs/vector_example_default\n"
                "glassbox verify outputs --json\n",
    .exits = {{GBX_EXIT_OK, "no problems"},
              {GBX_EXIT_DIFFERS, "problems"},
              {GBX_EXIT_USAGE, "usage, or a dump that cannot be read"}},
    .run = run,
};
