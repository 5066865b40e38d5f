#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/command.h"
#include "replay/sanitize/sanitize.h"
#include "replay/save/save.h"
#include "report/progress.h"
#include "report/reports.h"
#include "text/filter_values.h"

typedef struct command_line {
    const char *dump; /* NULL: the latest */
    const char *task; /* as the user wrote it */
    uint64_t first;   /* task_seq; of an id the id itself */
    uint64_t last;
    bool is_id;
    bool is_list;     /* a range or all: a line a task */
    int64_t dispatch; /* -1 for all */
    gbx_replay_kernel_files kernels;
    uint64_t runs;
    uint64_t jobs;    /* 0: one for each processor */
    const char *save; /* NULL */
    uint32_t timeout_ms;
    uint32_t sanitizers; /* a bit for each; 0: none */
    bool is_verbose;
    bool has_gdb;
    bool is_trusted;
    bool as_json;
} command_line;

/* --- options --- */

static void read_task(struct argp_state *state, const gbx_option *option, const char *text,
                      void *context) {
    command_line *line = context;
    bool is_all = strcmp(text, "all") == 0;
    line->task = text;
    line->is_id = strncasecmp(text, "0x", 2) == 0;
    line->is_list = is_all || (!line->is_id && strstr(text, ".."));
    line->first = 0;
    line->last = UINT64_MAX - 1;
    if (is_all ||
        (gbx_filter_read_range(text, UINT64_MAX - !line->is_id, &line->first, &line->last) &&
         (!line->is_id || line->first == line->last)))
        return;
    argp_error(state,
               "--%s: unknown value \"%s\"; expected a number such as 17, an id such as 0x11, a "
               "range such as 10..20, or all",
               option->name, text);
}

static void read_kernel(struct argp_state *state, const gbx_option *option, const char *text,
                        void *context) {
    gbx_replay_kernel_files *files = &((command_line *)context)->kernels;
    if (files->count == GBX_REPLAY_KERNEL_FILES)
        argp_error(state, "--%s: more than %d values", option->name, GBX_REPLAY_KERNEL_FILES);
    else
        files->items[files->count++] = text;
}

static void read_sanitizers(struct argp_state *state, const gbx_option *option, const char *text,
                            void *context) {
    command_line *line = context;
    for (const char *word = text ? text : "access,address"; word;) {
        char name[32];
        uint32_t sanitizer;
        size_t length = strcspn(word, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        if (strcmp(name, "undefined") == 0)
            sanitizer = GBX_SANITIZE_ADDRESS; /* both are asked by the same call */
        else if (!gbx_name_find(&gbx_sanitizers, name, &sanitizer))
            argp_error(state,
                       "--%s: unknown value \"%s\"; expected access, address, undefined, memory "
                       "or thread, or several with commas between them",
                       option->name, text);
        line->sanitizers |= 1u << sanitizer;
        word += length;
        word = *word ? word + 1 : NULL;
    }
}

static const char *const sanitizer_words[] = {
    "access", "address", "undefined", "memory", "thread", "access,address,memory,thread", NULL};

static const gbx_option options[] = {
    {"task", "TASK",
     .help =
         "The task of this number in order of submission (17) or id (0x11); or several tasks: a "
         "range (10..20), or all",
     .manual = "Several tasks: findings by kernel, what was asked, then those that are not bit "
               "exact.",
     GBX_STORE(CUSTOM, command_line, task), .read = read_task},
    {"dispatch", "N",
     .help = "Only one of the task's calls, counted by block, then subtask, from 0",
     GBX_STORE(INTEGER, command_line, dispatch), .max = UINT32_MAX},
    {"kernel", "FILE",
     .help = "Run this source or shared object instead, and show old and new side by side; for a "
             "mix, NAME=FILE, once for each kernel",
     .manual = "What the scene's reference expects is shown, too.",
     GBX_STORE(CUSTOM, command_line, kernels), .read = read_kernel, .may_repeat = true,
     .completion = GBX_COMPLETE_FILE},
    {"gdb", .help = "Start gdb, stopped at kernel_entry",
     .manual = "It shows the file and line of the kernel's own code.",
     GBX_STORE(FLAG, command_line, has_gdb)},
    {"repeat", "N", .help = "Run it N times, and show how long it takes",
     .manual = "Memory is restored before each run. Reports whether all runs leave the same bits.",
     GBX_STORE(INTEGER, command_line, runs), .min = 1, .max = 1000000},
    {"save", "DIR", .help = "Write a C program with its data that makes the same call",
     .manual = "The directory must be new or empty. It gets a Makefile, and needs no glassbox.",
     GBX_STORE(TEXT, command_line, save), .completion = GBX_COMPLETE_DIRECTORY},
    {"sanitize", "KIND", .may_lack_text = true,
     .help = "Name the line of a bug: compile the kernels with the compiler's sanitizers, and call "
             "them once in that memory; KIND is access, address, undefined (together the default), "
             "memory, thread, or several with commas between them",
     .manual = "access checks each load and store against the declared arguments, byte by byte. "
               "For address, everything that is not an argument is poisoned. A kernel needs its "
               "source; memory needs clang. With --kernel, that source is compiled.",
     GBX_STORE(CUSTOM, command_line, sanitizers), .read = read_sanitizers,
     .choices = sanitizer_words},
    {"verbose", .letter = 'v', .help = "With --sanitize, also print what the sanitizers print",
     GBX_STORE(FLAG, command_line, is_verbose)},
    {"trust", .help = "Run the kernels in the dump even if they are not found outside it",
     .manual = "With --kernel, also run references of a scene that others can write.",
     GBX_STORE(FLAG, command_line, is_trusted)},
    {"jobs", "N", .help = "Processes that call kernels (default: one for each processor)",
     GBX_STORE(INTEGER, command_line, jobs), .min = 1, .max = GBX_REPLAY_MAX_JOBS},
    {"timeout", "S", .help = "Seconds after which a kernel counts as hung (default 10)",
     GBX_STORE(SECONDS, command_line, timeout_ms)},
    {"json", .help = "Print one JSON document",
     .manual = "It has task_seq, task_id, kernel, verdict, outputs (an array of objects with "
               "arg_index, name, bit_exact, mismatches, not_written, max_abs, first_bad), fault, "
               "findings, notes, ns_per_call, stray_bytes and more; for several tasks, tasks, "
               "findings, notes and verdicts.",
     GBX_STORE(FLAG, command_line, as_json)},
    {0}};

static void check_options(struct argp_state *state, void *context) {
    const command_line *line = context;
    bool has_kernel = line->kernels.count > 0, repeats = line->runs > 1;
    const struct {
        const char *one;
        const char *other;
        bool are_given;
    } excluded[] = {{"--gdb", "--save", line->has_gdb && line->save},
                    {"--gdb", "--json", line->has_gdb && line->as_json},
                    {"--gdb", "--repeat", line->has_gdb && repeats},
                    {"--gdb", "several tasks", line->has_gdb && line->is_list},
                    {"--save", "--json", line->save && line->as_json},
                    {"--save", "--repeat", line->save && repeats},
                    {"--save", "several tasks", line->save && line->is_list},
                    {"--save", "--kernel: it saves the kernel that ran", line->save && has_kernel},
                    {"--sanitize", "--gdb", line->sanitizers && line->has_gdb},
                    {"--sanitize", "--save", line->sanitizers && line->save},
                    {"--sanitize", "--repeat", line->sanitizers && repeats},
                    {"--sanitize", "several tasks", line->sanitizers && line->is_list},
                    {"--dispatch", "several tasks", line->dispatch >= 0 && line->is_list},
                    {"--kernel", "several tasks", has_kernel && line->is_list}};
    if (line->is_verbose && !line->sanitizers)
        argp_error(state, "--verbose needs --sanitize");
    if (!line->task)
        argp_error(state, "missing --task: the task to replay; glassbox view lists tasks");
    for (size_t i = 0; i < sizeof excluded / sizeof excluded[0]; ++i)
        if (excluded[i].are_given)
            argp_error(state, "%s cannot be combined with %s", excluded[i].one, excluded[i].other);
}

/* --- one task --- */

static gbx_replay_reporting reporting_of(const gbx_replay_session *s,
                                         const gbx_invocation *invocation) {
    return (gbx_replay_reporting){invocation->sink, s->reader, s->run_end};
}

static gbx_status show_replay(const command_line *line, const gbx_replay_session *s,
                              const gbx_replay_job *job, gbx_invocation *invocation) {
    gbx_replay_result result;
    const gbx_replay_reporting reporting = reporting_of(s, invocation);
    gbx_progress *progress = gbx_progress_start("replaying");
    gbx_status status = gbx_replay_execute(job, NULL, &result);
    gbx_progress_stop(progress);
    if (!status)
        status = gbx_replay_print(&reporting, &result, line->as_json);
    invocation->exit_code = gbx_replay_exit_code(&result);
    gbx_replay_result_free(&result);
    return status;
}

static gbx_status show_swap(const command_line *line, const gbx_replay_session *s,
                            const gbx_replay_job *job, gbx_invocation *invocation) {
    gbx_replay_swap swap;
    const gbx_replay_reporting reporting = reporting_of(s, invocation);
    const char *files = line->kernels.items[0];
    for (size_t i = 1; i < line->kernels.count; ++i)
        files = gbx_text_format(&invocation->sink->texts, "%s, %s", files, line->kernels.items[i]);
    const gbx_swap_scene scene = {s->config.directory, s->kept, s->config.is_trusted};
    gbx_status status = gbx_replay_swap_run(job, &scene, &swap);
    if (status && gbx_status_code(status) == GBX_BAD_KERNEL)
        status = gbx_status_annotate(status, "--kernel %s", files);
    if (!status)
        status = gbx_replay_print_swap(&reporting, &swap, files, line->as_json);
    invocation->exit_code = gbx_replay_swap_exit_code(&swap);
    gbx_replay_swap_free(&swap);
    return status;
}

static gbx_status save(const command_line *line, const gbx_replay_session *s,
                       const gbx_replay_task *task, gbx_sink *sink) {
    static gbx_saved_kernels kernels; /* too large for a stack */
    char title[GBX_REPLAY_TITLE_BYTES];
    gbx_texts *t = &sink->texts;
    const gbx_replay_saving saving = {s->engine,      s->config.entries, task,
                                      line->dispatch, s->kept,           s->config.directory};
    GBX_TRY(gbx_replay_session_check_dispatch(s, task));
    GBX_TRY(gbx_replay_save(&saving, line->save, &kernels));
    gbx_sink_print(sink, "%s: saved as a program; make -C %s run\n",
                   gbx_text_shown(t, gbx_replay_task_title(task, title)),
                   gbx_text_shown(t, gbx_text_word(t, line->save)));
    for (size_t i = 0; i < kernels.count; ++i)
        if (kernels.items[i].why_object[0])
            gbx_sink_print(sink, "kernel %s is saved as a shared object: %s\n",
                           gbx_text_shown(t, kernels.items[i].name),
                           gbx_text_shown(t, kernels.items[i].why_object));
    return NULL;
}

static gbx_status show_sanitized(const command_line *line, gbx_replay_session *s,
                                 const gbx_replay_task *task, gbx_invocation *invocation) {
    gbx_sanitize_report report;
    gbx_progress *progress = gbx_progress_start("sanitizing");
    gbx_status status = gbx_sanitize_task(s, task, line->sanitizers, &report);
    gbx_progress_stop(progress);
    GBX_TRY(status);
    status = gbx_sanitize_print(invocation->sink, task, &report, line->is_verbose, line->as_json);
    invocation->exit_code = gbx_sanitize_exit_code(&report);
    gbx_sanitize_report_free(&report);
    return status;
}

static gbx_status show_task(const command_line *line, gbx_replay_session *s,
                            const gbx_replay_task *task, gbx_invocation *invocation) {
    gbx_replay_job job;
    if (line->sanitizers)
        return show_sanitized(line, s, task, invocation);
    if (line->save)
        return save(line, s, task, invocation->sink);
    GBX_TRY(gbx_replay_session_job(s, task, &job));
    if (line->has_gdb)
        return gbx_replay_gdb(&job, s->kept, &invocation->exit_code);
    return line->kernels.count > 0 ? show_swap(line, s, &job, invocation)
                                   : show_replay(line, s, &job, invocation);
}

static gbx_status replay_one(const command_line *line, gbx_replay_session *s,
                             gbx_invocation *invocation) {
    gbx_replay_task task;
    uint64_t number = line->first;
    if (line->is_id) {
        gbx_status found = gbx_replay_session_find_id(s, line->first, &number);
        if (found)
            return gbx_status_annotate(found, "--task %s", line->task);
    }
    gbx_status status = gbx_replay_task_read(s->config.entries, number, &task);
    if (status)
        return gbx_replay_task_explain(&task, status, true);
    status = show_task(line, s, &task, invocation);
    gbx_replay_task_free(&task);
    return status;
}

/* --- several tasks --- */

/* A result, on its way to the list. */
typedef struct listing {
    gbx_replay_listing *list;
    gbx_progress *progress;
    uint64_t count;
} listing;

static gbx_status on_result(void *context, gbx_replay_result *result) {
    listing *l = context;
    gbx_progress_count(l->progress, ++l->count, 0, "task");
    return gbx_replay_listing_add(l->list, result);
}

static gbx_status replay_all(const command_line *line, gbx_replay_session *s,
                             gbx_invocation *invocation) {
    listing l = {0};
    const gbx_replay_reporting reporting = reporting_of(s, invocation);
    GBX_TRY(gbx_replay_listing_begin(&reporting, line->as_json, &l.list));
    l.progress = gbx_progress_start("replaying");
    gbx_status status = gbx_replay_session_run(s, line->first, line->last, on_result, &l);
    gbx_progress_stop(l.progress);
    if (status && gbx_status_code(status) == GBX_OUT_OF_RANGE)
        status = gbx_status_annotate(status, "--task %s", line->task);
    return gbx_replay_listing_end(l.list, status, &invocation->exit_code);
}

/* --- the command --- */

/* For one task, only its records are read. To find an id, those of all tasks are needed. */
static gbx_status open_dump(const command_line *line, gbx_opened_dump *out_dump) {
    const unsigned indexed = GBX_INDEX_DISPATCHES | GBX_INDEX_GRAPH;
    return line->is_list || line->is_id
               ? gbx_opened_dump_open(line->dump, indexed, out_dump)
               : gbx_opened_dump_open_tasks(line->dump, indexed, line->first, line->first,
                                            out_dump);
}

static gbx_status run(void *context, gbx_invocation *invocation) {
    const command_line *line = context;
    gbx_opened_dump dump;
    gbx_replay_session session;
    GBX_TRY(open_dump(line, &dump));
    const gbx_replay_session_config config = {.entries = dump.entries,
                                              .directory = dump.directory,
                                              .kernels = line->kernels,
                                              .is_trusted = line->is_trusted,
                                              .timeout_ms = line->timeout_ms,
                                              .dispatch = line->dispatch,
                                              .runs = line->runs,
                                              .jobs = (uint32_t)line->jobs};
    gbx_status status = gbx_replay_session_open(&config, &session);
    if (!status)
        status = line->is_list ? replay_all(line, &session, invocation)
                               : replay_one(line, &session, invocation);
    gbx_replay_session_close(&session);
    gbx_opened_dump_close(&dump);
    return status;
}

const gbx_command gbx_command_replay = {
    .name = "replay",
    .summary = "call the kernels of one task again, alone",
    GBX_TAKES_DUMP(command_line, dump),
    .defaults = &(const command_line){.dispatch = -1, .runs = 1},
    .groups = {{NULL, options, 0}},
    .description =
        "Run tasks of a dump again, each alone: tensors where they were, inputs as they were before "
        "dispatch, everything else a pattern; and compare what it leaves with the dump, bit "
        "for bit. A second call with the same pattern and a third with another show what a kernel "
        "reads, writes and leaves out without saying so; blocks are called one at a time, in both "
        "orders, to find races. " GBX_DUMP_IS
        ". Kernels in a dump are code: they run without asking only if the same bytes are in this "
        "user's kernel cache, or if their source compiles to the same bytes.",
    .examples = "glassbox replay --task 29\n"
                "glassbox replay outputs/latest --task all\n"
                "glassbox replay --task 29 \\\n"
                "    --kernel examples/paged_attention/kernels/softmax_prepare.c\n"
                "glassbox replay --task 29 --repeat 100 --json\n"
                "glassbox replay --task 29 --sanitize=access,address,memory,thread\n"
                "glassbox replay --task 29 --save task29\n",
    .exits = {{GBX_EXIT_OK, "bit exact, or equal where written, and no findings; with --kernel, "
                            "right according to the reference, or without one, all written and "
                            "unchanged"},
              {GBX_EXIT_DIFFERS,
               "it differs, writes nothing or could not be compared, has a finding, "
               "or runs of --repeat left different bits"},
              {GBX_EXIT_USAGE, "usage, the dump lacks parts of the task or is damaged, or a kernel "
                               "does not compile or is not trusted"},
              {GBX_EXIT_DEVICE, "it crashed or hung"},
              {GBX_EXIT_LOST, "the disk failed while saving"}},
    .check = check_options,
    .run = run,
};
