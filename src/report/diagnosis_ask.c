/* Asking for a diagnosis, with a progress line, and keeping it in the dump. */
#include "report/ending.h"
#include "report/progress.h"
#include "report/reports.h"

static void on_step(void *context, gbx_diagnose_step step, uint64_t done, uint64_t all) {
    static const struct {
        const char *what;
        const char *unit;
    } steps[] = {[GBX_DIAGNOSE_VERIFIES] = {"checking the dump", NULL},
                 [GBX_DIAGNOSE_AUDITS] = {"auditing memory", "entry"},
                 [GBX_DIAGNOSE_COMPILES] = {"compiling references", "kernel"},
                 [GBX_DIAGNOSE_CALLS] = {"calling kernels", "task"},
                 [GBX_DIAGNOSE_SANITIZES] = {"compiling kernels with sanitizers", "task"},
                 [GBX_DIAGNOSE_CONCLUDES] = {"drawing conclusions", "task"}};
    gbx_progress_phase(context, NULL, steps[step].what);
    gbx_progress_count(context, done, all, steps[step].unit);
}

static gbx_status diagnose(const gbx_diagnosis_asking *asking, gbx_opened_dump *out_dump,
                           gbx_diagnosis *out_diagnosis) {
    gbx_progress *progress = gbx_progress_start("reading the dump");
    gbx_status status =
        gbx_opened_dump_open(asking->given, GBX_INDEX_GRAPH | GBX_INDEX_DISPATCHES, out_dump);
    gbx_diagnose_request request = asking->request;
    request.entries = out_dump->entries;
    request.directory = out_dump->directory;
    request.progress = on_step;
    request.progress_context = progress;
    if (!status)
        status = gbx_diagnose(&request, out_diagnosis);
    gbx_progress_stop(progress);
    return status;
}

/* A verdict that cannot be kept is shown all the same. */
static void save(const gbx_diagnosis_asking *asking, const gbx_opened_dump *dump,
                 const gbx_diagnosis *diagnosis) {
    gbx_status status = gbx_diagnosis_save(dump, asking->given, diagnosis);
    if (status)
        gbx_command_say(asking->command, "warning: %s; with --no-save it is not kept",
                        gbx_status_message(status));
    gbx_status_free(status);
}

gbx_status gbx_diagnosis_ask(gbx_sink *sink, const gbx_diagnosis_asking *asking,
                             size_t *out_findings) {
    gbx_opened_dump dump = {0};
    gbx_diagnosis diagnosis = {0};
    *out_findings = 0;
    gbx_status status = diagnose(asking, &dump, &diagnosis);
    if (!status && diagnosis.chosen == 0 && diagnosis.tasks > 0)
        status =
            gbx_fail(GBX_INVALID_ARGUMENT, "--task: %s has none of these tasks", dump.directory);
    if (!status && !asking->is_quiet)
        status = gbx_diagnosis_print(sink, &dump, asking->given, &diagnosis, asking->as_json);
    if (!status && asking->saves)
        save(asking, &dump, &diagnosis);
    *out_findings = diagnosis.finding_count;
    gbx_diagnosis_free(&diagnosis);
    gbx_opened_dump_close(&dump);
    return status;
}
