/* Queries of a dump of many records: what they must answer, and how fast they are. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

#define LIST_TIMES 20.0 /* as fast as json.load */
#define LIST_MIB 100.0  /* of memory */

/* A line of `text` that begins with the entry's index and ends with its hash. */
static bool has_row(const char *text, const rare_entry *entry) {
    for (const char *line = text; line; line = strchr(line, '\n')) {
        char *end = NULL;
        line += *line == '\n';
        if (strtoull(line, &end, 10) != entry->index || end == line)
            continue;
        size_t length = strcspn(line, "\n");
        return memmem(line, length, entry->hash, 8) && memmem(line, length, RARE_KERNEL, 6);
    }
    return false;
}

static bool check_rare_table(const char *text, const rare_entry *entries, uint64_t count) {
    char foot[64];
    snprintf(foot, sizeof foot, "\n%llu of ", (unsigned long long)count);
    bool is_right = expect(strstr(text, foot) != NULL, "the count of matching entries is right");
    for (uint64_t i = 0; i < count; ++i)
        is_right &= expect(has_row(text, &entries[i]), "every entry that matches is listed");
    return is_right;
}

static bool check_rare_json(const char *text, const rare_entry *entries, uint64_t count) {
    json_t *document = json_loads(text, 0, NULL);
    json_t *listed = json_object_get(document, "tensors");
    bool is_right = expect(json_array_size(listed) == count, "JSON lists what matches");
    for (size_t i = 0; is_right && i < count; ++i) {
        json_t *one = json_array_get(listed, i);
        const char *hash = json_string_value(json_object_get(one, "hash"));
        json_int_t index = json_integer_value(json_object_get(one, "index"));
        is_right = expect(hash && strcmp(hash, entries[i].hash) == 0 &&
                              (uint64_t)index == entries[i].index,
                          "an entry of the JSON has its index and hash");
    }
    json_decref(document);
    return is_right;
}

/* Checks that the rows printed for the rare kernel are those of the dump. */
static bool check_rare(const char *output, const record_totals *totals, bool is_json) {
    uint64_t count = totals->rare_tasks * RARE_OUTPUTS;
    rare_entry *entries = calloc(count + 1, sizeof *entries);
    char *text = entries ? read_file(output) : NULL;
    bool is_right = text != NULL;
    if (is_right)
        list_rare_entries(totals, entries);
    if (is_right)
        is_right = is_json ? check_rare_json(text, entries, count)
                           : check_rare_table(text, entries, count);
    free(text);
    free(entries);
    return is_right;
}

/* A query of the dump of many records. */
typedef struct question {
    const char *name;
    const char *options[MAX_OPTIONS];
    bool has_goal; /* it is a filtered list */
    bool is_rare;  /* its answer is that of the rare kernel, and is checked */
    bool is_whole; /* all entries: so many a second */
} question;

static bool ask(const setting *how, const char *directory, const question *q,
                const record_totals *totals, double load_s) {
    outcome of;
    char output[PATH_BYTES];
    set_path(how, "answer", output);
    if (!measure_view(how, directory, q->options, q->is_whole ? NULL : output, &of))
        return false;
    bool is_json = strcmp(q->options[0], "--json") == 0;
    if (q->is_rare && !check_rare(output, totals, is_json))
        return false;
    printf("%-52s %9.4f %9.4f %9.1f %9.1f", q->name, of.seconds, of.processor_s,
           load_s / of.seconds, of.peak_mib);
    if (q->has_goal)
        printf("   %s, %s", load_s / of.seconds >= LIST_TIMES ? "ok" : "BELOW",
               of.peak_mib <= LIST_MIB ? "ok" : "ABOVE");
    if (q->is_whole)
        printf("   %.2f M rows/s", (double)totals->entries * 1e-6 / of.seconds);
    printf("\n");
    fflush(stdout);
    return true;
}

static const question questions[] = {
    {"--kernel " RARE_KERNEL " --stage after",
     {"--kernel", RARE_KERNEL, "--stage", "after"},
     .has_goal = true,
     .is_rare = true},
    {"--json --kernel " RARE_KERNEL " --stage after",
     {"--json", "--kernel", RARE_KERNEL, "--stage", "after"},
     .has_goal = true,
     .is_rare = true},
    {"--kernel 'soft*' --arg weights --limit 10",
     {"--kernel", "soft*", "--arg", "weights", "--limit", "10"},
     .has_goal = true},
    {"--limit 10", {"--limit", "10"}, .has_goal = false},
    {"--sort -bytes --limit 10", {"--sort", "-bytes", "--limit", "10"}, .has_goal = false},
    {"everything", {"--sort", "index"}, .is_whole = true},
    {"everything, --json", {"--json"}, .is_whole = true},
};

/* One task in the middle: its entries are counted. */
static bool ask_task(const setting *how, const char *directory, const record_totals *totals,
                     double load_s) {
    char number[32], name[64], foot[64], output[PATH_BYTES];
    uint64_t first;
    uint64_t count = count_task_entries(totals->tasks / 2, &first);
    snprintf(number, sizeof number, "%llu", (unsigned long long)(totals->tasks / 2));
    snprintf(name, sizeof name, "--task %s", number);
    snprintf(foot, sizeof foot, "\n%llu of ", (unsigned long long)count);
    question q = {.name = name, .options = {"--task", number}, .has_goal = true};
    if (!ask(how, directory, &q, totals, load_s))
        return false;
    set_path(how, "answer", output);
    char *text = read_file(output);
    bool is_right = expect(text && strstr(text, foot), "a task has its entries");
    free(text);
    return is_right;
}

static bool ask_head(const setting *how, const char *directory) {
    static const char script[] = "\"$0\" view \"$1\" | head -5";
    const char *const arguments[] = {"/bin/sh", "-c", script, how->command, directory, NULL};
    char output[PATH_BYTES];
    outcome of;
    set_path(how, "answer", output);
    if (!measure_program(how, arguments, output, &of))
        return false;
    printf("%-52s %9.4f %9.4f\n", "view | head -5", of.seconds, of.processor_s);
    char *text = read_file(output);
    unsigned lines = 0;
    for (const char *at = text; at && *at; ++at)
        lines += *at == '\n';
    free(text);
    return expect(lines == 5, "head prints 5 lines");
}

static bool ask_all(const setting *how, const char *directory, const record_totals *totals,
                    double load_s) {
    bool is_right = true;
    printf("%-52s %9s %9s %9s %9s   >= %g times, <= %g MiB\n", "glassbox view", "s", "cpu s",
           "x faster", "MiB", LIST_TIMES, LIST_MIB);
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; ++i)
        is_right &= ask(how, directory, &questions[i], totals, load_s);
    is_right &= ask_task(how, directory, totals, load_s);
    is_right &= ask_head(how, directory);
    return is_right;
}

/* Of a dump with only a manifest, as another tool would leave it. */
static bool ask_manifest(const setting *how, const char *directory, const record_totals *totals,
                         double load_s) {
    static const question q = {"only the manifest: --kernel " RARE_KERNEL " --stage after",
                               {"--kernel", RARE_KERNEL, "--stage", "after"},
                               .is_rare = true};
    char journal[PATH_BYTES], aside[PATH_BYTES];
    set_path(how, "records/tensor_dump/tensor_dump.rec", journal);
    set_path(how, "aside", aside);
    if (rename(journal, aside) != 0)
        return expect(false, "the journal can be moved away");
    bool is_right = ask(how, directory, &q, totals, load_s);
    return expect(rename(aside, journal) == 0, "the journal can be moved back") && is_right;
}

bool print_records(const setting *how) {
    char directory[PATH_BYTES], manifest[PATH_BYTES];
    record_totals totals;
    outcome verified, load;
    set_path(how, "records", directory);
    set_path(how, "records/tensor_dump/tensor_dump.json", manifest);
    if (!succeeded(make_record_dump(how, directory, &totals)))
        return false;
    const char *const verify[] = {how->command, "verify", directory, NULL};
    if (!run_program(verify, NULL, &verified) || !measure_json_load(how, manifest, &load))
        return false;
    printf("a dump of %llu records of %llu tasks, verified in %.2f s; medians of %u\n"
           "json.load of its manifest: %.2f s (%.2f of the processor)\n",
           (unsigned long long)totals.entries, (unsigned long long)totals.tasks, verified.seconds,
           how->repeats, load.seconds, load.processor_s);
    bool is_right = ask_all(how, directory, &totals, load.seconds);
    is_right &= ask_manifest(how, directory, &totals, load.seconds);
    printf("\n");
    return is_right;
}
