#include <stdlib.h>

#include "cli/command.h"
#include "report/ending.h"
#include "report/progress.h"
#include "report/reports.h"
#include "store/dump_path.h"

static gbx_status recover(const char *dump, gbx_invocation *invocation) {
    gbx_recovery recovery;
    char *directory;
    GBX_TRY(gbx_dump_path_find(dump, &directory));
    gbx_progress *progress = gbx_progress_start("recovering");
    gbx_status status = gbx_dump_recover(directory, &recovery);
    gbx_progress_stop(progress);
    if (!status) {
        gbx_recovery_print(invocation->sink, &recovery, directory);
        if (recovery.findings.count > 0 || recovery.kept_entries > recovery.records)
            invocation->exit_code = GBX_EXIT_DIFFERS;
        gbx_recovery_free(&recovery);
    }
    free(directory);
    return status;
}

/* Whatever the code of a failure: nothing was recovered. */
static gbx_status run(void *context, gbx_invocation *invocation) {
    const char *const *dump = context;
    gbx_status status = recover(*dump, invocation);
    if (status) {
        gbx_command_end("recover", status, GBX_EXIT_OK);
        invocation->exit_code = GBX_EXIT_USAGE;
    }
    return NULL;
}

const gbx_command gbx_command_recover = {
    .name = "recover",
    .summary = "repair the dump of a killed run",
    .arguments = "DUMP",
    .takes = "one dump",
    .least = 1,
    .most = 1,
    .line_bytes = sizeof(const char *),
    .description =
        "Repair the dump of a killed run: keep all records whose block of the journal was written, "
        "end the journal, and write the manifests that the run could not, with complete: false. A "
        "broken end of the journal is cut off and kept in a file beside it. A journal that needs a "
        "newer glassbox is refused, and a manifest with more entries than the journal stays. DUMP "
        "is a dump directory, its parent or its tensor_dump.",
    .examples = "glassbox recover outputs/latest\n"
                "glassbox recover outputs/vector_example_default\n",
    .exits = {{GBX_EXIT_OK, "recovered, or nothing to recover"},
              {GBX_EXIT_DIFFERS,
               "payload of some entries is missing, or the journal lacks entries of the manifest"},
              {GBX_EXIT_USAGE,
               "usage, a dump that cannot be read or needs a newer glassbox, or its "
               "run is still going on"}},
    .run = run,
};
