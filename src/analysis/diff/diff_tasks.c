#include "analysis/diff/internal.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/graph.h"
#include "analysis/internal.h"
#include "base/memory.h"

enum { SUBTASKS = 3 };

/* A task and the key it is matched by. */
typedef struct keyed_task {
    uint64_t key;
    uint64_t task;
} keyed_task;

typedef struct task_list {
    keyed_task *items;
    uint64_t count;
    bool has_ids; /* every task has an id, and no two are equal */
} task_list;

static int compare_placed(const void *left, const void *right) {
    const gbx_diff_task *a = left;
    const gbx_diff_task *b = right;
    const uint64_t of_a[] = {a->place, a->a != GBX_DIFF_NONE ? a->a : a->b};
    const uint64_t of_b[] = {b->place, b->a != GBX_DIFF_NONE ? b->a : b->b};
    return gbx_compare_pairs(of_a, of_b);
}

/* --- the tasks of one dump --- */

static gbx_status list_tasks(gbx_entries *entries, task_list *out_list) {
    uint64_t entry_count = gbx_entries_count(entries);
    uint64_t capacity = 0;
    for (uint64_t i = 0; i < entry_count; ++capacity) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        i = gbx_entries_find(entries, entry.head->task + 1);
    }
    *out_list =
        (task_list){.items = malloc((capacity + 1) * sizeof *out_list->items), .has_ids = true};
    if (!out_list->items)
        return gbx_fail_memory("listing the tasks of two dumps");
    for (uint64_t i = 0; i < entry_count && out_list->count < capacity;) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        out_list->items[out_list->count++] =
            (keyed_task){entry.task ? entry.task->task_id : 0, entry.head->task};
        out_list->has_ids &= entry.task != NULL;
        i = gbx_entries_find(entries, entry.head->task + 1);
    }
    return NULL;
}

static void sort_by_id(task_list *list) {
    qsort(list->items, list->count, sizeof *list->items, gbx_compare_pairs);
    for (uint64_t i = 1; i < list->count; ++i)
        list->has_ids &= list->items[i - 1].key != list->items[i].key;
}

static void sort_by_number(task_list *list) {
    for (uint64_t i = 0; i < list->count; ++i)
        list->items[i].key = list->items[i].task;
    qsort(list->items, list->count, sizeof *list->items, gbx_compare_pairs);
}

/* --- matching --- */

static bool has_common_key(const task_list *a, const task_list *b) {
    for (uint64_t i = 0, k = 0; i < a->count && k < b->count;) {
        if (a->items[i].key == b->items[k].key)
            return true;
        if (a->items[i].key < b->items[k].key)
            ++i;
        else
            ++k;
    }
    return false;
}

static bool has_numbers(gbx_entries *entries) {
    return gbx_reader_get_origin(gbx_entries_reader(entries))->known & GBX_KNOWN_TASK_SEQ;
}

/* Numbers are the key if both dumps have them. The numbers of a dump without are only the order of
 * appearance: ids are better. */
static gbx_diff_matching sort_by_key(gbx_entries *a, task_list *tasks_a, gbx_entries *b,
                                     task_list *tasks_b) {
    bool is_numbered = has_numbers(a) && has_numbers(b);
    if (!is_numbered) {
        sort_by_id(tasks_a);
        sort_by_id(tasks_b);
        if (tasks_a->has_ids && tasks_b->has_ids && has_common_key(tasks_a, tasks_b))
            return GBX_DIFF_BY_TASK_ID;
    }
    sort_by_number(tasks_a);
    sort_by_number(tasks_b);
    return is_numbered ? GBX_DIFF_BY_NUMBER : GBX_DIFF_BY_ORDER;
}

static gbx_status pair_tasks(const task_list *a, const task_list *b, gbx_diff_tasks *tasks) {
    uint64_t i = 0;
    uint64_t k = 0;
    tasks->items = calloc(a->count + b->count + 1, sizeof *tasks->items);
    if (!tasks->items)
        return gbx_fail_memory("listing the tasks of two dumps");
    while (i < a->count || k < b->count) {
        bool has_a = i < a->count && (k == b->count || a->items[i].key <= b->items[k].key);
        bool has_b = k < b->count && (i == a->count || b->items[k].key <= a->items[i].key);
        tasks->items[tasks->count++] =
            (gbx_diff_task){.a = has_a ? a->items[i].task : GBX_DIFF_NONE,
                            .b = has_b ? b->items[k].task : GBX_DIFF_NONE};
        i += has_a;
        k += has_b;
    }
    return NULL;
}

/* --- graph order --- */

static bool has_edges(const gbx_task_graph *graph) {
    for (uint64_t i = 0; i < gbx_task_graph_count(graph); ++i)
        if (gbx_task_graph_at(graph, i)->predecessor_count > 0)
            return true;
    return false;
}

/* The graph of A, or that of B if only B has edges. */
static gbx_status open_graph(gbx_entries *a, gbx_entries *b, gbx_task_graph **out_graph,
                             bool *out_is_b) {
    gbx_task_graph *other = NULL;
    *out_is_b = false;
    GBX_TRY(gbx_task_graph_create(gbx_entries_reader(a), out_graph));
    if (has_edges(*out_graph))
        return NULL;
    GBX_TRY(gbx_task_graph_create(gbx_entries_reader(b), &other));
    *out_is_b = has_edges(other);
    gbx_task_graph_destroy(*out_is_b ? *out_graph : other);
    if (*out_is_b)
        *out_graph = other;
    return NULL;
}

gbx_status gbx_diff_tasks_match(gbx_entries *a, gbx_entries *b, gbx_diff_tasks *out_tasks) {
    task_list tasks_a = {0}, tasks_b = {0};
    gbx_task_graph *graph = NULL;
    bool is_b;
    *out_tasks = (gbx_diff_tasks){0};
    gbx_status status = list_tasks(a, &tasks_a);
    if (!status)
        status = list_tasks(b, &tasks_b);
    if (!status) {
        out_tasks->matching = sort_by_key(a, &tasks_a, b, &tasks_b);
        status = pair_tasks(&tasks_a, &tasks_b, out_tasks);
    }
    free(tasks_a.items);
    free(tasks_b.items);
    if (!status)
        status = open_graph(a, b, &graph, &is_b);
    if (!status) {
        out_tasks->bad_edges = gbx_task_graph_bad_edges(graph);
        /* A task that is not in the graph follows the task with the next lower number. */
        uint64_t last = 0;
        for (uint64_t i = 0; i < out_tasks->count; ++i) {
            gbx_diff_task *task = &out_tasks->items[i];
            uint64_t number = is_b ? task->b : task->a;
            if (number == GBX_DIFF_NONE && out_tasks->matching == GBX_DIFF_BY_NUMBER)
                number = is_b ? task->a : task->b; /* the graph also has tasks without entries */
            uint64_t place =
                number == GBX_DIFF_NONE ? UINT64_MAX : gbx_task_graph_place(graph, number);
            task->place = place == UINT64_MAX ? last : place;
            last = task->place;
        }
        qsort(out_tasks->items, out_tasks->count, sizeof *out_tasks->items, compare_placed);
    } else {
        gbx_diff_tasks_free(out_tasks);
    }
    gbx_task_graph_destroy(graph);
    return status;
}

void gbx_diff_tasks_free(gbx_diff_tasks *tasks) {
    free(tasks->items);
    tasks->items = NULL;
    tasks->count = 0;
}

/* --- kernels --- */

/* The names of a task's kernels; returns -1 if the dump does not name all of them. */
static int name_kernels(const gbx_reader *reader, const gbx_entry *entry,
                        const char *names[SUBTASKS]) {
    int count = 0;
    if (!entry->task)
        return -1;
    for (size_t i = 0; i < SUBTASKS; ++i) {
        if (entry->task->func_ids[i] == UINT32_MAX)
            continue;
        const gbx_run_kernel *kernel =
            gbx_run_info_kernel(gbx_reader_run(reader), entry->task->func_ids[i]);
        if (!kernel)
            return -1;
        names[count++] = kernel->name;
    }
    return count > 0 ? count : -1;
}

/* How many of `names` equal `name`. */
static int occurrences(const char *const names[SUBTASKS], int count, const char *name) {
    int found = 0;
    for (int i = 0; i < count; ++i)
        found += strcmp(names[i], name) == 0;
    return found;
}

bool gbx_diff_kernels_match(const gbx_reader *reader_a, const gbx_entry *a,
                            const gbx_reader *reader_b, const gbx_entry *b) {
    const char *names_a[SUBTASKS], *names_b[SUBTASKS];
    int count_a = name_kernels(reader_a, a, names_a);
    int count_b = name_kernels(reader_b, b, names_b);
    if (count_a < 0 || count_b < 0)
        return true;
    bool is_same = count_a == count_b;
    for (int i = 0; is_same && i < count_a; ++i)
        is_same =
            occurrences(names_a, count_a, names_a[i]) == occurrences(names_b, count_b, names_a[i]);
    return is_same;
}
