#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/array_text.h"
#include "base/float_bits.h"
#include "base/memory.h"
#include "cli/internal.h"
#include "store/manifest/manifest_text.h"

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
    bool has_number = gbx_reader_get_origin(reader)->known & GBX_KNOWN_TASK_SEQ;
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
    gbx_text_numbers(gbx_record_shape(entry->tensor), entry->head->ndims, at);
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

/* Those of statistics; NULL for none. */
static void fill_statistics(gbx_view_row *row, const gbx_entry *entry,
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

enum { LINES_AT_A_TIME = 4096, CUT_BYTES = 1024, LINE_BYTES = 4096, MEASURED_MAX = 65536 };

typedef struct column {
    const char *heading;
    int flags;
    size_t narrowest; /* that its texts can be cut to; 0: they cannot */
} column;

static const column columns[GBX_VIEW_COLUMN_COUNT] = {
    [GBX_VIEW_INDEX] = {"INDEX", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_TASK] = {"TASK", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_KERNEL] = {"KERNEL", 0, 8},
    [GBX_VIEW_STAGE] = {"STAGE", 0, 0},
    [GBX_VIEW_ROLE] = {"ROLE", 0, 0},
    [GBX_VIEW_ARG] = {"ARG", 0, 6},
    [GBX_VIEW_DTYPE] = {"DTYPE", 0, 0},
    [GBX_VIEW_SHAPE] = {"SHAPE", 0, 8},
    [GBX_VIEW_BYTES] = {"BYTES", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_HASH] = {"HASH", 0, 0},
    [GBX_VIEW_MIN] = {"MIN", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_MAX] = {"MAX", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_MEAN] = {"MEAN", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_NAN] = {"NAN", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_INF] = {"INF", SCOLS_FL_RIGHT, 0},
    [GBX_VIEW_NOTE] = {"NOTE", 0, 6},
};

/* What is given up first where there is no room. */
static const gbx_view_column dispensable[] = {
    GBX_VIEW_HASH,   GBX_VIEW_ROLE, GBX_VIEW_BYTES, GBX_VIEW_DTYPE, GBX_VIEW_STAGE, GBX_VIEW_ARG,
    GBX_VIEW_KERNEL, GBX_VIEW_TASK, GBX_VIEW_NOTE,  GBX_VIEW_SHAPE, GBX_VIEW_MEAN,  GBX_VIEW_INF};

/* Of the whole list. */
typedef struct layout {
    size_t widths[GBX_VIEW_COLUMN_COUNT]; /* 0: the column is not shown */
    bool is_hidden[GBX_VIEW_COLUMN_COUNT];
    bool is_cut; /* some are narrower than their texts */
    bool has_statistics;
} layout;

/* --- widths --- */

static void widen(size_t *width, size_t to) {
    if (*width < to)
        *width = to;
}

static gbx_status measure_entry(layout *l, gbx_view_row *row, gbx_entries *entries, uint64_t index,
                                uint64_t *elements_max) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(entries, index, &entry));
    gbx_view_row_fill(row, gbx_entries_reader(entries), &entry);
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i) {
        /* Names may hold any bytes; all other texts are of ASCII. */
        bool is_name = i == GBX_VIEW_KERNEL || i == GBX_VIEW_ARG;
        if (i < GBX_VIEW_MIN || i >= GBX_VIEW_NOTE)
            widen(&l->widths[i],
                  is_name ? gbx_terminal_text_width(row->cells[i]) : strlen(row->cells[i]));
    }
    uint64_t elements = gbx_entry_numel(&entry);
    *elements_max = elements > *elements_max ? elements : *elements_max;
    return NULL;
}

/* The first `measured` entries, and the last, whose numbers are the largest unless it is sorted. */
static gbx_status measure(layout *l, gbx_view_row *row, gbx_entries *entries,
                          const uint64_t *indices, uint64_t count, uint64_t measured) {
    uint64_t elements_max = 0;
    for (uint64_t i = 0; i < measured; ++i)
        GBX_TRY(measure_entry(l, row, entries, indices[i], &elements_max));
    if (measured < count)
        GBX_TRY(measure_entry(l, row, entries, indices[count - 1], &elements_max));
    /* Numbers of statistics are not known yet; counts are at most those of the elements. */
    char digits[GBX_VIEW_NUMBER_BYTES];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%ju", (uintmax_t)elements_max);
    for (size_t i = GBX_VIEW_MIN; l->has_statistics && i < GBX_VIEW_NOTE; ++i)
        l->widths[i] = i < GBX_VIEW_NAN ? GBX_VIEW_NUMBER_WIDTH : length;
    if (measured < count)
        widen(&l->widths[GBX_VIEW_NOTE], 1); /* one may come yet */
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i)
        if (l->widths[i] > 0)
            widen(&l->widths[i], strlen(columns[i].heading));
    return NULL;
}

static size_t total_width(const layout *l) {
    size_t total = 0;
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i)
        if (l->widths[i] > 0)
            total += l->widths[i] + 1;
    return total > 0 ? total - 1 : 0;
}

/* The column that gives a character: the widest that can. COLUMN_COUNT where none can. */
static size_t widest(const layout *l) {
    size_t found = GBX_VIEW_COLUMN_COUNT;
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i) {
        bool can_give = columns[i].narrowest > 0 && l->widths[i] > columns[i].narrowest;
        if (can_give && (found == GBX_VIEW_COLUMN_COUNT || l->widths[i] > l->widths[found]))
            found = i;
    }
    return found;
}

/* What was given up may have left more room than was needed: the narrowest that are cut get it. */
static void give_back(layout *l, const layout *whole, size_t width) {
    while (total_width(l) < width) {
        size_t found = GBX_VIEW_COLUMN_COUNT;
        for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i) {
            bool is_cut = l->widths[i] > 0 && l->widths[i] < whole->widths[i];
            if (is_cut && (found == GBX_VIEW_COLUMN_COUNT || l->widths[i] < l->widths[found]))
                found = i;
        }
        if (found == GBX_VIEW_COLUMN_COUNT) {
            l->is_cut = false;
            return;
        }
        l->widths[found]++;
    }
}

static void fit(layout *l, size_t width) {
    const layout whole = *l;
    size_t given_up = 0;
    while (total_width(l) > width) {
        size_t i = widest(l);
        if (i < GBX_VIEW_COLUMN_COUNT) {
            l->widths[i]--;
            l->is_cut = true;
            continue;
        }
        if (given_up == sizeof dispensable / sizeof dispensable[0])
            return;
        gbx_view_column hidden = dispensable[given_up++];
        l->is_hidden[hidden] = l->widths[hidden] > 0;
        l->widths[hidden] = 0;
    }
    if (l->is_cut)
        give_back(l, &whole, width);
}

/* --- printing --- */

/* NULL where there is no memory for it. */
static struct libscols_table *make_table(const layout *l) {
    struct libscols_table *table = scols_new_table();
    bool is_good = table != NULL;
    for (size_t i = 0; is_good && i < GBX_VIEW_COLUMN_COUNT; ++i) {
        if (l->widths[i] == 0)
            continue;
        is_good = scols_table_new_column(table, "", (double)l->widths[i],
                                         columns[i].flags | SCOLS_FL_STRICTWIDTH) != NULL;
    }
    if (!is_good) {
        scols_unref_table(table);
        return NULL;
    }
    /* Widths are fixed, for parts of the list are printed as tables of their own; headings are a
     * line like others, so that they do not count in addition. */
    scols_table_enable_noheadings(table, 1);
    scols_table_enable_noencoding(table, 1); /* texts are escaped here */
    scols_table_set_termforce(table, SCOLS_TERMFORCE_ALWAYS);
    scols_table_set_termwidth(table, total_width(l) + GBX_VIEW_COLUMN_COUNT);
    return table;
}

static bool add_line(struct libscols_table *table, const layout *l, const gbx_view_row *row) {
    struct libscols_line *line = scols_table_new_line(table, NULL);
    char cut[CUT_BYTES];
    char escaped[4 * CUT_BYTES];
    size_t cell = 0;
    for (size_t i = 0; line && i < GBX_VIEW_COLUMN_COUNT; ++i) {
        if (l->widths[i] == 0)
            continue;
        const char *text = row->cells[i];
        if (l->is_cut)
            text = gbx_terminal_cut(text, l->widths[i], cut, sizeof cut);
        gbx_terminal_escape(text, escaped, sizeof escaped);
        if (scols_line_set_data(line, cell++, escaped) != 0)
            return false;
    }
    return line != NULL;
}

/* Puts a text and blanks; returns where it ends, NULL where it is not plain or too long. */
static char *put_cell(char *at, const char *text, size_t width, bool is_right) {
    size_t length = 0;
    for (; text[length]; ++length)
        if (text[length] < ' ' || text[length] > '~' || text[length] == '\\')
            return NULL;
    if (length > width)
        return NULL;
    memset(at, ' ', width);
    memcpy(is_right ? at + width - length : at, text, length);
    return at + width;
}

/*
 * Prints a line that needs nothing but blanks around its texts, as libsmartcols would, which takes
 * ten times as long. False, and nothing printed, for others.
 */
static bool print_plain(const layout *l, const gbx_view_row *row) {
    char line[LINE_BYTES];
    char *at = line;
    const char *last = NULL; /* the text at the end, which has no blanks after it */
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i) {
        if (l->widths[i] == 0)
            continue;
        if (l->widths[i] + 2 > sizeof line - (size_t)(at - line))
            return false;
        if (at > line)
            *at++ = ' ';
        last = columns[i].flags & SCOLS_FL_RIGHT ? NULL : row->cells[i];
        at = put_cell(at, row->cells[i], l->widths[i], columns[i].flags & SCOLS_FL_RIGHT);
        if (!at)
            return false;
        if (last)
            last = at - l->widths[i] + strlen(last);
    }
    if (last)
        at = line + (last - line);
    *at++ = '\n';
    fwrite(line, 1, (size_t)(at - line), stdout);
    return true;
}

static gbx_status print_line(struct libscols_table *table, const layout *l,
                             const gbx_view_row *row) {
    if (print_plain(l, row))
        return NULL;
    if (!add_line(table, l, row) || scols_print_table(table) != 0)
        return gbx_fail_memory("printing the list");
    scols_table_remove_lines(table);
    return NULL;
}

/* `summaries` are NULL without statistics. */
static gbx_status print_lines(struct libscols_table *table, const layout *l, gbx_view_row *row,
                              gbx_entries *entries, const uint64_t *indices, size_t count,
                              const gbx_entry_summary *summaries) {
    for (size_t i = 0; i < count && !ferror(stdout); ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(entries, indices[i], &entry));
        gbx_view_row_fill(row, gbx_entries_reader(entries), &entry);
        if (summaries)
            fill_statistics(row, &entry, summaries[i].is_there ? &summaries[i].statistics : NULL);
        GBX_TRY(print_line(table, l, row));
    }
    return NULL;
}

static gbx_status print_parts(struct libscols_table *table, const layout *l, gbx_view_row *row,
                              gbx_entries *entries, const uint64_t *indices, uint64_t count,
                              gbx_entry_summary *summaries) {
    gbx_view_row headings;
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i)
        headings.cells[i] = columns[i].heading;
    GBX_TRY(print_line(table, l, &headings));
    for (uint64_t done = 0; done < count && !ferror(stdout);) {
        uint64_t left = count - done;
        size_t lines = left < LINES_AT_A_TIME ? (size_t)left : LINES_AT_A_TIME;
        if (summaries)
            GBX_TRY(gbx_entries_statistics(entries, indices + done, lines, summaries, &lines));
        GBX_TRY(print_lines(table, l, row, entries, indices + done, lines, summaries));
        done += lines;
    }
    return NULL;
}

/* On a further line where the terminal ends. */
static void print_word(const char *word, size_t *used, size_t width) {
    size_t length = strlen(word);
    bool is_fitting = *used == 0 || *used + 1 + length <= width;
    printf("%s%s", *used == 0 ? "" : is_fitting ? " " : "\n", word);
    *used = *used > 0 && is_fitting ? *used + 1 + length : length;
}

static void print_hidden(const layout *l, size_t width) {
    size_t left = 0;
    size_t used = 0;
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i)
        left += l->is_hidden[i];
    if (left == 0)
        return;
    print_word("no room for:", &used, width);
    for (size_t i = 0; i < GBX_VIEW_COLUMN_COUNT; ++i) {
        char word[16];
        if (!l->is_hidden[i])
            continue;
        snprintf(word, sizeof word, "%s%s", columns[i].heading, --left > 0 ? "," : "");
        print_word(word, &used, width);
    }
    putchar('\n');
}

gbx_status gbx_view_table_print(gbx_entries *entries, const uint64_t *indices, uint64_t count,
                                bool has_statistics) {
    layout l = {.has_statistics = has_statistics};
    gbx_view_row row = {0};
    if (count == 0)
        return NULL;
    size_t width = gbx_terminal_width();
    uint64_t measured = width == SIZE_MAX && count > MEASURED_MAX ? MEASURED_MAX : count;
    GBX_TRY(measure(&l, &row, entries, indices, count, measured));
    fit(&l, width);
    struct libscols_table *table = make_table(&l);
    gbx_entry_summary *summaries =
        has_statistics ? malloc(LINES_AT_A_TIME * sizeof *summaries) : NULL;
    gbx_status status = table && (summaries || !has_statistics)
                            ? print_parts(table, &l, &row, entries, indices, count, summaries)
                            : gbx_fail_memory("printing the list");
    free(summaries);
    scols_unref_table(table);
    GBX_TRY(status);
    print_hidden(&l, width);
    return NULL;
}
