#include "cli/view_row.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/array_text.h"
#include "base/float_bits.h"
#include "cli/terminal.h"
#include "store/manifest/manifest_text.h"
#include "text/names.h"

enum { HASH_SHOWN = 8, HEX_PREFIX = 3 }; /* that of gbx_put_hex: "0x */

static void put_number(char out_text[GBX_VIEW_NUMBER_BYTES], uint64_t value) {
    *gbx_put_u64(out_text, value) = '\0';
}

/* A name of the dump, cut where it is long. Returns its bytes. */
static size_t put_name(char *at, const char *name) {
    char cut[GBX_VIEW_NAME_BYTES];
    const char *text = gbx_terminal_cut(name, GBX_VIEW_NAME_WIDTH, cut, sizeof cut);
    size_t length = strlen(text);
    memcpy(at, text, length);
    return length;
}

/* --- texts that are used elsewhere, too --- */

void gbx_view_kernel_text(const gbx_reader *reader, const gbx_record_task *task,
                          char out_text[GBX_VIEW_KERNEL_BYTES]) {
    const gbx_run_info *run = gbx_reader_run(reader);
    size_t used = 0;
    for (size_t i = 0; task && i < GBX_SUBTASK_COUNT; ++i) {
        if (task->func_ids[i] == GBX_NO_KERNEL)
            continue;
        const gbx_run_kernel *kernel = gbx_run_info_kernel(run, task->func_ids[i]);
        if (used > 0)
            out_text[used++] = '+';
        if (kernel) {
            used += put_name(out_text + used, kernel->name);
        } else {
            char *at = GBX_PUT(out_text + used, "func ");
            used = (size_t)(gbx_put_u64(at, task->func_ids[i]) - out_text);
        }
    }
    out_text[used] = '\0';
    if (used == 0)
        snprintf(out_text, GBX_VIEW_KERNEL_BYTES, "unknown");
}

void gbx_view_task_text(const gbx_reader *reader, const gbx_entry *entry,
                        char out_text[GBX_VIEW_NUMBER_BYTES]) {
    bool has_number = gbx_reader_get_origin(reader)->told & GBX_TOLD_TASK_SEQ;
    if (has_number || !entry->task)
        put_number(out_text, entry->head->task);
    else
        snprintf(out_text, GBX_VIEW_NUMBER_BYTES, "0x%" PRIx64, entry->task->task_id);
}

void gbx_view_mean_text(double mean, char out_text[GBX_VIEW_NUMBER_BYTES]) {
    if (snprintf(out_text, GBX_VIEW_NUMBER_BYTES, "%.6g", mean) > GBX_VIEW_NUMBER_WIDTH)
        snprintf(out_text, GBX_VIEW_NUMBER_BYTES, "%.5g", mean); /* such as -1.2346e+300 */
}

void gbx_view_extreme_text(uint32_t dtype, uint64_t bits, char out_text[GBX_VIEW_NUMBER_BYTES]) {
    if (gbx_dtype_is_float(dtype)) {
        gbx_view_mean_text(gbx_f64_of_bits(bits), out_text);
        return;
    }
    bool is_signed = gbx_dtype_is_signed(dtype);
    *(is_signed ? gbx_put_i64(out_text, (int64_t)bits) : gbx_put_u64(out_text, bits)) = '\0';
    if (strlen(out_text) > GBX_VIEW_NUMBER_WIDTH)
        gbx_view_mean_text(is_signed ? (double)(int64_t)bits : (double)bits, out_text);
}

/* --- cells --- */

static void fill_kernel(gbx_view_row *row, const gbx_reader *reader, const gbx_record_task *task) {
    static const uint32_t none[GBX_SUBTASK_COUNT] = {GBX_NO_KERNEL, GBX_NO_KERNEL, GBX_NO_KERNEL};
    const uint32_t *func_ids = task ? task->func_ids : none;
    row->cells[GBX_VIEW_KERNEL] = row->kernel;
    if (row->has_kernel && memcmp(row->func_ids, func_ids, sizeof row->func_ids) == 0)
        return;
    memcpy(row->func_ids, func_ids, sizeof row->func_ids);
    row->has_kernel = true;
    gbx_view_kernel_text(reader, task, row->kernel);
}

/* "2 scores", or the slot alone. */
static void fill_arg(gbx_view_row *row, const gbx_entry *entry) {
    char *at = gbx_put_u64(row->arg, entry->head->arg_index);
    if (entry->arg_name) {
        *at++ = ' ';
        at += put_name(at, entry->arg_name);
    }
    *at = '\0';
    row->cells[GBX_VIEW_ARG] = row->arg;
}

/* "[4, 128, 64]"; of a scalar its value, "= 0.125". */
static void fill_shape(gbx_view_row *row, const gbx_entry *entry) {
    char *at = row->shape;
    row->cells[GBX_VIEW_SHAPE] = row->shape;
    if (entry->scalar) {
        at = GBX_PUT(at, "= ");
        gbx_element_format(entry->dtype, entry->scalar->bits, at);
        return;
    }
    const int64_t *shape = gbx_record_shape(entry->tensor);
    *at++ = '[';
    for (uint32_t i = 0; i < entry->head->ndims; ++i) {
        if (i > 0)
            at = GBX_PUT(at, ", ");
        at = gbx_put_i64(at, shape[i]);
    }
    *at++ = ']';
    *at = '\0';
}

static void fill_payload(gbx_view_row *row, const gbx_entry *entry) {
    bool has_payload = entry->tensor && (entry->head->flags & GBX_FLAG_HAS_PAYLOAD);
    row->cells[GBX_VIEW_BYTES] = has_payload ? row->bytes : "-";
    if (has_payload)
        put_number(row->bytes, entry->tensor->bin_size);
    row->cells[GBX_VIEW_HASH] = "-";
    if (!entry->tensor || !(entry->head->flags & GBX_FLAG_HAS_HASH))
        return;
    /* The text of a hash begins with its high word. */
    gbx_put_hex(row->hash, entry->tensor->hash_high);
    row->hash[HEX_PREFIX + HASH_SHOWN] = '\0';
    row->cells[GBX_VIEW_HASH] = row->hash + HEX_PREFIX;
}

static void fill_note(gbx_view_row *row, const gbx_entry *entry) {
    unsigned flags = entry->head->flags;
    bool is_bare = entry->tensor && !(flags & GBX_FLAG_HAS_PAYLOAD);
    row->cells[GBX_VIEW_NOTE] = row->note;
    row->note[0] = '\0';
    if (!is_bare && !(flags & (GBX_FLAG_TRUNCATED | GBX_FLAG_IN_FLIGHT | GBX_FLAG_OVERWRITTEN)))
        return;
    snprintf(row->note, sizeof row->note, "%s%s%s%s",
             flags & GBX_FLAG_IN_FLIGHT ? ", in flight" : "",
             flags & GBX_FLAG_TRUNCATED ? ", truncated" : "",
             flags & GBX_FLAG_OVERWRITTEN ? ", overwritten" : "", is_bare ? ", no payload" : "");
    row->cells[GBX_VIEW_NOTE] = row->note + 2;
}

void gbx_view_row_fill(gbx_view_row *row, const gbx_reader *reader, const gbx_entry *entry) {
    put_number(row->index, entry->index);
    row->cells[GBX_VIEW_INDEX] = row->index;
    gbx_view_task_text(reader, entry, row->task);
    row->cells[GBX_VIEW_TASK] = row->task;
    fill_kernel(row, reader, entry->task);
    row->cells[GBX_VIEW_STAGE] = gbx_name_brief(&gbx_stages, entry->head->stage);
    row->cells[GBX_VIEW_ROLE] = gbx_name_brief(&gbx_roles, entry->head->role);
    fill_arg(row, entry);
    row->cells[GBX_VIEW_DTYPE] = gbx_dtype_name(entry->dtype);
    fill_shape(row, entry);
    fill_payload(row, entry);
    fill_note(row, entry);
}

void gbx_view_row_fill_statistics(gbx_view_row *row, const gbx_entry *entry,
                                  const gbx_statistics *statistics) {
    for (size_t i = 0; i < GBX_VIEW_NOTE - GBX_VIEW_MIN; ++i)
        row->cells[GBX_VIEW_MIN + i] = statistics ? row->numbers[i] : "-";
    if (!statistics)
        return;
    gbx_view_extreme_text(entry->dtype, statistics->min_bits, row->numbers[0]);
    gbx_view_extreme_text(entry->dtype, statistics->max_bits, row->numbers[1]);
    gbx_view_mean_text(statistics->mean, row->numbers[2]);
    put_number(row->numbers[3], statistics->nan_count);
    put_number(row->numbers[4], statistics->inf_count);
}
