#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/chip.h>

#include "base/memory.h"
#include "report/reports.h"
#include "report/table.h"
#include "store/manifest/manifest.h"

/* --- arguments --- */

/* "[4, 128, 64]" of a tensor, "= 0.125" of a scalar, "= 0x7e9000000040" of a word. */
static const char *slot_text(gbx_texts *t, const gbx_slot_view *view) {
    const gbx_record_slot *slot = view->slot;
    return slot->is_tensor
               ? gbx_text_numbers(t, view->shape, slot->ndims)
               : gbx_text_join(t, "= ", gbx_text_element(t, slot->dtype, slot->bits), "");
}

/* "0 x in float32 [4, 4]; 1 addend float32 = 1.0; 2 word = 0x7e9000000040"; cut at `capacity`. */
static void put_arguments(gbx_texts *t, const gbx_run_info *run,
                          const gbx_record_dispatch *dispatch, char *out_text, size_t capacity) {
    const void *at = dispatch + 1;
    size_t used = 0;
    out_text[0] = '\0';
    for (uint32_t i = 0; i < dispatch->slot_count && used < capacity; ++i) {
        gbx_slot_view view;
        at = gbx_record_next_slot(at, &view);
        const gbx_record_slot *slot = view.slot;
        const char *name = gbx_dispatch_arg_name(run, dispatch, slot->arg_index);
        const char *role = slot->is_tensor
                               ? gbx_text_join(t, " ", gbx_name_brief(&gbx_roles, slot->role), "")
                               : "";
        used += (size_t)snprintf(out_text + used, capacity - used, "%s%s%s %s %s", i ? "; " : "",
                                 gbx_text_arg(t, slot->arg_index, name), role,
                                 slot->is_word ? "word" : gbx_dtype_name(slot->dtype),
                                 slot_text(t, &view));
    }
}

/* --- the list --- */

typedef struct list_row {
    uint64_t index;
    const char *task, *kernel, *subtask;
    uint32_t core, block, blocks;
    char arguments[GBX_TEXT_BYTES_MAX];
} list_row;

#define COLUMN(member, kind, heading, ...)                                                         \
    GBX_FIELD(list_row, member, kind, NULL, heading, __VA_ARGS__)

static const gbx_field columns[] = {COLUMN(index, NUMBER, "INDEX"),
                                    COLUMN(task, STRING, "TASK", .is_right = true, .leaves = 5),
                                    COLUMN(kernel, STRING, "KERNEL", .narrowest = 8, .leaves = 6),
                                    COLUMN(subtask, STRING, "SUBTASK", .leaves = 1),
                                    COLUMN(core, NUMBER, "CORE", .leaves = 4),
                                    COLUMN(block, NUMBER, "BLOCK", .leaves = 3),
                                    COLUMN(blocks, NUMBER, "BLOCKS", .leaves = 2),
                                    COLUMN(arguments, TEXT, "ARGUMENTS", .narrowest = 10)};

typedef struct listing {
    gbx_texts *texts;
    const gbx_dispatches *dispatches;
    const uint64_t *indices;
} listing;

static gbx_status make_row(const void *context, uint64_t number, void *out_row) {
    const listing *l = *(const listing *const *)context;
    const gbx_reader *reader = l->dispatches->reader;
    const gbx_record_dispatch *dispatch;
    list_row *row = out_row;
    GBX_TRY(gbx_dispatches_at(l->dispatches, l->indices[number], &dispatch));
    put_arguments(l->texts, gbx_reader_run(reader), dispatch, row->arguments,
                  sizeof row->arguments);
    row->index = l->indices[number];
    row->task = gbx_text_task(l->texts, reader, dispatch->head.task, dispatch->task_id);
    row->kernel = gbx_text_func(l->texts, reader, dispatch->func_id);
    row->subtask = gbx_name_of(&gbx_subtasks, dispatch->subtask);
    row->core = dispatch->core_id;
    row->block = dispatch->block_idx;
    row->blocks = dispatch->block_num;
    return NULL;
}

gbx_status gbx_dispatches_print_list(gbx_sink *sink, const gbx_opened_dump *dump,
                                     const gbx_dispatches *dispatches, const gbx_selected *selected,
                                     uint64_t limit, bool is_filtered) {
    gbx_texts *t = &sink->texts;
    uint64_t shown = selected->count < limit ? selected->count : limit;
    listing l = {.texts = t, .dispatches = dispatches, .indices = selected->indices};
    const listing *const context = &l;
    list_row row;
    gbx_dump_print_dispatch_head(sink, dump);
    GBX_TRY(gbx_rows_print(sink, GBX_ROWS_MADE(columns, &context, shown, make_row, &row), 1));
    if (is_filtered)
        gbx_sink_print(sink, "%s of %s match\n", gbx_text_count(t, selected->count),
                       gbx_text_counted(t, dispatches->count, "dispatch"));
    if (shown < selected->count)
        gbx_sink_print(sink, "%s more not shown (--limit %" PRIu64 ")\n",
                       gbx_text_count(t, selected->count - shown), shown);
    return NULL;
}

/* --- one dispatch --- */

typedef struct slot_row {
    const char *role;
    uint32_t kind, dtype;
    char arg[512];
    char shape[256];
    char data[32];
    char bits[32];
} slot_row;

#define SLOT(member, kind, heading, ...)                                                           \
    GBX_FIELD(slot_row, member, kind, NULL, heading, __VA_ARGS__)

static const gbx_field slot_columns[] = {SLOT(arg, TEXT, "ARG", .narrowest = 6),
                                         SLOT(kind, NAME, "KIND", .names = &gbx_slot_kinds),
                                         SLOT(role, STRING, "ROLE", .leaves = 2),
                                         SLOT(dtype, DTYPE, "DTYPE", .leaves = 3),
                                         SLOT(shape, TEXT, "SHAPE", .narrowest = 8),
                                         SLOT(data, TEXT, "DATA", .leaves = 1),
                                         SLOT(bits, TEXT, "BITS")};

/* A row for each slot; the caller frees them. */
static gbx_status make_slots(gbx_texts *t, const gbx_run_info *run,
                             const gbx_record_dispatch *dispatch, slot_row **out_rows) {
    slot_row *rows = calloc(dispatch->slot_count + 1, sizeof *rows);
    const void *at = dispatch + 1;
    if (!rows)
        return gbx_fail_memory("printing a dispatch");
    for (uint32_t i = 0; i < dispatch->slot_count; ++i) {
        gbx_slot_view view;
        at = gbx_record_next_slot(at, &view);
        const gbx_record_slot *slot = view.slot;
        const char *name = gbx_dispatch_arg_name(run, dispatch, slot->arg_index);
        snprintf(rows[i].arg, sizeof rows[i].arg, "%s", gbx_text_arg(t, slot->arg_index, name));
        rows[i].role = slot->is_word ? "" : gbx_name_brief(&gbx_roles, slot->role);
        rows[i].kind = gbx_record_slot_kind(slot);
        rows[i].dtype = slot->dtype;
        snprintf(rows[i].shape, sizeof rows[i].shape, "%s",
                 slot->is_tensor ? slot_text(t, &view)
                                 : gbx_text_scalar(t, slot->dtype, slot->bits));
        snprintf(rows[i].data, sizeof rows[i].data, slot->is_tensor ? "0x%" PRIx64 : "-",
                 view.data);
        snprintf(rows[i].bits, sizeof rows[i].bits, "0x%016" PRIx64, slot->bits);
    }
    *out_rows = rows;
    return NULL;
}

gbx_status gbx_dispatches_print_one(gbx_sink *sink, const gbx_opened_dump *dump,
                                    const gbx_dispatches *dispatches, uint64_t index) {
    gbx_texts *t = &sink->texts;
    const gbx_record_dispatch *d;
    slot_row *rows;
    gbx_dump_print_dispatch_head(sink, dump);
    GBX_TRY(gbx_dispatches_at(dispatches, index, &d));
    gbx_sink_print(sink,
                   "dispatch %" PRIu64 ": task %s (0x%016" PRIx64 "), kernel %s, %s, core %" PRIu32
                   ", block %" PRIu32 " of %" PRIu32 "\n",
                   index, gbx_text_task(t, dump->reader, d->head.task, d->task_id), d->task_id,
                   gbx_text_shown(t, gbx_text_func(t, dump->reader, d->func_id)),
                   gbx_name_of(&gbx_subtasks, d->subtask), d->core_id, d->block_idx, d->block_num);
    gbx_sink_print(sink, "contexts 0x%016" PRIx64 " (local), 0x%016" PRIx64 " (global)\n",
                   d->local_context, d->global_context);
    GBX_TRY(make_slots(t, gbx_reader_run(dump->reader), d, &rows));
    gbx_status status = gbx_rows_print(sink, GBX_ROWS(slot_columns, rows, d->slot_count), 1);
    free(rows);
    return status;
}

/* --- JSON --- */

gbx_status gbx_dispatches_print_json(gbx_sink *sink, const gbx_opened_dump *dump,
                                     const gbx_dispatches *dispatches, const gbx_selected *selected,
                                     uint64_t limit) {
    char real[PATH_MAX];
    const char *name = realpath(dump->directory, real) ? strrchr(real, '/') + 1 : dump->directory;
    uint64_t count = selected->count < limit ? selected->count : limit;
    gbx_manifest_choice *choices = malloc((count + 1) * sizeof *choices);
    if (!choices)
        return gbx_fail_memory("listing %" PRIu64 " dispatches", count);
    for (uint64_t i = 0; i < count; ++i)
        choices[i] = (gbx_manifest_choice){selected->indices[i],
                                           dispatches->positions[selected->indices[i]]};
    gbx_manifest_chosen chosen = {.run_directory = name, .choices = choices, .count = count};
    gbx_status status = gbx_manifest_print(dump->reader, GBX_MANIFEST_FILE_DISPATCHES, &chosen,
                                           gbx_sink_write, sink);
    free(choices);
    return status;
}
