#include "report/reports.h"

static void print_if(gbx_sink *sink, bool is_so, const char *done) {
    if (is_so)
        gbx_sink_print(sink, "  %s\n", done);
}

static void print_done(gbx_sink *sink, const gbx_recovery *r) {
    gbx_texts *t = &sink->texts;
    if (r->cut_bytes > 0)
        gbx_sink_print(sink, "  cut %s off the journal (%s), kept in %s\n",
                       gbx_text_counted(t, r->cut_bytes, "byte"), r->stop_text,
                       gbx_text_shown(t, r->tail_path));
    print_if(sink, r->has_ended, "ended the journal");
    print_if(sink, r->has_tensor_manifest, "wrote tensor_dump.json");
    print_if(sink, r->has_args_manifests, "wrote args_dump.json and kernel_args_dump.json");
    if (r->kept_entries > r->records)
        gbx_sink_count(sink, "  kept tensor_dump.json: it has ", r->kept_entries, "entry",
                       ", more than the journal; to read the dump from it, move tensor_dump.rec "
                       "away");
    print_if(sink, r->kept_entries > 0 && r->kept_entries <= r->records,
             "kept tensor_dump.json: the journal has records that this version does not know");
    print_if(sink, r->has_kept_args,
             "kept args_dump.json and kernel_args_dump.json: they have more than the journal");
    gbx_sink_count(sink, "  left ", r->newer_records, "record",
                   " of types newer than this version unchanged");
    gbx_sink_count(sink, "  removed ", r->removed_files, "temporary file", "");
}

void gbx_recovery_print(gbx_sink *sink, const gbx_recovery *recovery, const char *directory) {
    gbx_texts *t = &sink->texts;
    gbx_sink_print(sink, "%s %s: %s of %s, %s of payload",
                   recovery->was_whole ? "nothing to recover in" : "recovered",
                   gbx_text_shown(t, directory), gbx_text_counted(t, recovery->records, "entry"),
                   gbx_text_counted(t, recovery->tasks, "task"),
                   gbx_text_bytes(t, recovery->payload_bytes));
    if (recovery->dispatches > 0)
        gbx_sink_print(sink, ", %s", gbx_text_counted(t, recovery->dispatches, "dispatch"));
    gbx_sink_print(sink, "; %s\n",
                   recovery->is_complete ? "the run had ended" : "the dump is not complete");
    print_done(sink, recovery);
    gbx_sink_count(sink, "the payload of ", recovery->findings.count, "entry", " is missing:");
    gbx_findings_print(sink, &recovery->findings, "; glassbox verify --json has all\n");
    if (!recovery->was_whole)
        gbx_sink_print(sink, "next: glassbox verify %s\n",
                       gbx_text_shown(t, gbx_text_word(t, directory)));
}
