#include "journal_test_builder.h"

#include "checks.h"

#include <glassbox/kernel.h>
#include <glassbox/orchestration.h>

#include "analysis/accesses.h"

enum {
    DUMPS = 300,
    QUERIES = 200, /* of each kind */
    TASKS_MAX = 12,
    ARGS_MAX = 4,
    POOL = 6,      /* views that are used again */
    WINDOW = 2048, /* bytes from `base` on that views of a random dump may have */
    RESULTS_MAX = 2,
    PIECES_MAX = 3
};

typedef struct fixture {
    dump dump;
    builder journal;
    gbx_reader *reader;
    gbx_entries *entries;
    gbx_accesses *accesses;
} fixture;

static const char run_text[] =
    "{\"generator\":\"test\",\"run\":{},\"kernels\":["
    "{\"func_id\":3,\"name\":\"k\",\"core_type\":\"aiv\",\"signature\":[\"in\",\"out\"],"
    "\"arg_names\":[\"x\",null]}],\"run_args\":[{\"name\":\"seen\",\"role\":\"input\"},"
    "{\"name\":\"made\",\"role\":\"output\"}]}";

static const uint32_t func_ids[3] = {UINT32_MAX, 3, UINT32_MAX};

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    make_dump(&f->dump);
    begin_journal(&f->journal);
    add_run(&f->journal, run_text);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    gbx_accesses_destroy(f->accesses);
    gbx_entries_destroy(f->entries);
    gbx_reader_close(f->reader);
    remove_dump(&f->dump);
    free(f->journal.bytes);
    free(f);
    return 0;
}

static void open_dump(fixture *f) {
    assert_ok(
        gbx_reader_open(f->dump.directory, GBX_INDEX_ARGUMENTS | GBX_INDEX_GRAPH, &f->reader));
    assert_ok(gbx_entries_create(f->reader, &f->entries));
    assert_ok(gbx_accesses_create(f->entries, &f->accesses));
}

static void finish_dump(fixture *f) {
    finish_journal(&f->journal, &f->dump);
    open_dump(f);
}

static void put_task(fixture *f, uint64_t task) {
    add_task(&f->journal, task, 0x100 + task, func_ids, 1);
}

static void put_view(fixture *f, head h, const gbx_tensor *view) {
    h.dtype = view->dtype;
    h.ndims = view->ndims;
    add_tensor(&f->journal, h,
               (tensor_fields){.buffer_addr = view->data,
                               .start_offset = view->start_offset,
                               .shape = view->shape,
                               .strides = view->strides});
}

/* An argument of one dimension, at the stage of its role. */
static void put_row(fixture *f, uint64_t task, unsigned arg_index, unsigned role, uint64_t data,
                    gbx_dtype dtype, int64_t length, int64_t stride) {
    gbx_tensor view = {
        .data = data, .dtype = dtype, .ndims = 1, .shape = {length}, .strides = {stride}};
    put_view(
        f,
        (head){
            .task = task, .arg_index = arg_index, .role = role, .stage = role == GBX_ROLE_OUTPUT},
        &view);
}

static bool ask_owner(fixture *f, uint64_t task, uint64_t address, gbx_tensor_access *out_access) {
    bool is_found = false;
    assert_ok(gbx_accesses_owner(f->accesses, task, address, out_access, &is_found));
    return is_found;
}

static bool ask_next(fixture *f, uint64_t task, uint64_t address, uint64_t bytes,
                     gbx_tensor_access *out_access) {
    bool is_found = false;
    assert_ok(gbx_accesses_next_read(f->accesses, task, address, bytes, out_access, &is_found));
    return is_found;
}

/* --- random dumps, against a walk over all elements of all arguments --- */

typedef struct argument {
    uint64_t task;
    unsigned arg_index, role, stage;
    gbx_tensor view;
} argument;

typedef struct result {
    gbx_tensor view;
    uint64_t pieces[PIECES_MAX][3]; /* offset, address, bytes */
    uint64_t piece_count;
} result;

typedef struct model {
    uint64_t seed;
    uint64_t base;
    gbx_tensor pool[POOL];
    argument arguments[TASKS_MAX * ARGS_MAX]; /* in the order of entries */
    size_t argument_count;
    uint64_t tasks[TASKS_MAX];
    bool is_lost[TASKS_MAX]; /* its TASK record */
    size_t task_count;
    result results[RESULTS_MAX];
    size_t result_count;
    unsigned found, of_results; /* by queries */
} model;

static uint64_t pick(model *m, uint64_t end) {
    m->seed = m->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (m->seed >> 33) % end;
}

static unsigned bits_of(unsigned dtype) {
    return dtype == GBX_INT4       ? 4
           : dtype == GBX_INT8     ? 8
           : dtype == GBX_BFLOAT16 ? 16
           : dtype == GBX_FLOAT32  ? 32
                                   : 64;
}

static const gbx_dtype dtypes[] = {GBX_INT4, GBX_INT8, GBX_BFLOAT16, GBX_FLOAT32, GBX_INT64};

/* Row-major; packed rows begin with a byte. */
static void make_contiguous(gbx_tensor *view) {
    int64_t stride = 1;
    for (uint32_t d = view->ndims; d-- > 0;) {
        view->strides[d] = stride;
        stride *= view->shape[d];
        if (d + 1 == view->ndims && view->dtype == GBX_INT4)
            stride += stride % 2;
    }
}

/* Contiguous, transposed, or with any strides: overlapping, backwards, 0. Some have no elements,
 * some reach before their buffer, which makes them invalid. */
static gbx_tensor make_view(model *m) {
    gbx_tensor view = {
        .data = m->base + pick(m, 128), .dtype = dtypes[pick(m, 5)], .ndims = (uint32_t)pick(m, 4)};
    uint64_t kind = pick(m, 3);
    view.start_offset = (int64_t)pick(m, kind == 2 ? 60 : 5);
    for (uint32_t d = 0; d < view.ndims; ++d)
        view.shape[d] = pick(m, 30) == 0 ? 0 : 1 + (int64_t)pick(m, 5);
    make_contiguous(&view);
    for (uint32_t d = 0; d < view.ndims && kind == 2; ++d)
        view.strides[d] = (int64_t)pick(m, 20) - 6;
    if (kind == 1 && view.ndims > 1) {
        int64_t length = view.shape[0], stride = view.strides[0];
        view.shape[0] = view.shape[1];
        view.strides[0] = view.strides[1];
        view.shape[1] = length;
        view.strides[1] = stride;
    }
    return view;
}

static int64_t count_elements(const gbx_tensor *view) {
    int64_t count = 1;
    for (uint32_t d = 0; d < view->ndims; ++d)
        count *= view->shape[d];
    return count;
}

static int64_t position_of(const gbx_tensor *view, int64_t number) {
    int64_t position = view->start_offset;
    for (uint32_t d = view->ndims; d-- > 0; number /= view->shape[d])
        position += number % view->shape[d] * view->strides[d];
    return position;
}

static bool is_usable(const gbx_tensor *view) {
    int64_t count = count_elements(view), bits = bits_of(view->dtype);
    for (int64_t i = 0; i < count; ++i) {
        int64_t position = position_of(view, i);
        if (position < 0 || (uint64_t)((position * bits + bits + 7) / 8) > UINT64_MAX - view->data)
            return false;
    }
    return count > 0;
}

/* The first element with a byte that is marked in the window; -1 for none. */
static int64_t first_marked(const model *m, const gbx_tensor *view, const bool *marked) {
    int64_t count = count_elements(view), bits = bits_of(view->dtype);
    for (int64_t i = 0; i < count; ++i) {
        int64_t bit = position_of(view, i) * bits;
        for (int64_t byte = bit / 8; byte <= (bit + bits - 1) / 8; ++byte)
            if (marked[view->data - m->base + (uint64_t)byte])
                return i;
    }
    return -1;
}

static void unmark(const model *m, const gbx_tensor *view, bool *marked) {
    int64_t count = count_elements(view), bits = bits_of(view->dtype);
    for (int64_t i = 0; i < count; ++i) {
        int64_t bit = position_of(view, i) * bits;
        for (int64_t byte = bit / 8; byte <= (bit + bits - 1) / 8; ++byte)
            marked[view->data - m->base + (uint64_t)byte] = false;
    }
}

static uint64_t extent_of(const gbx_tensor *view) {
    int64_t count = count_elements(view), bits = bits_of(view->dtype);
    int64_t first = INT64_MAX, end = 0;
    for (int64_t i = 0; i < count; ++i) {
        int64_t bit = position_of(view, i) * bits;
        first = bit / 8 < first ? bit / 8 : first;
        end = (bit + bits + 7) / 8 > end ? (bit + bits + 7) / 8 : end;
    }
    return (uint64_t)(end - first);
}

/* --- making them --- */

static void add_argument(fixture *f, model *m, size_t task, unsigned arg_index, unsigned stage) {
    argument a = {.task = m->tasks[task], .arg_index = arg_index, .stage = stage};
    a.role = stage ? GBX_ROLE_OUTPUT : pick(m, 4) ? GBX_ROLE_INPUT : GBX_ROLE_INOUT;
    a.view = pick(m, 2) ? m->pool[pick(m, POOL)] : make_view(m);
    unsigned flags = pick(m, 8) ? 0 : 16; /* in flight */
    head h = {.task = a.task, .arg_index = arg_index, .role = a.role, .stage = stage};
    h.flags = flags;
    put_view(f, h, &a.view);
    if (a.role == GBX_ROLE_INOUT && pick(m, 4)) {
        h.stage = 1;
        put_view(f, h, &a.view);
    }
    if (is_usable(&a.view))
        m->arguments[m->argument_count++] = a;
}

static void add_tasks(fixture *f, model *m) {
    uint64_t number = pick(m, 3);
    m->task_count = 1 + pick(m, TASKS_MAX);
    for (size_t i = 0; i < m->task_count; ++i) {
        m->tasks[i] = number;
        m->is_lost[i] = pick(m, 10) == 0;
        number += 1 + pick(m, 3) / 2;
        if (!m->is_lost[i])
            put_task(f, m->tasks[i]);
        unsigned count = (unsigned)pick(m, ARGS_MAX + 1), inputs = (unsigned)pick(m, count + 1);
        for (unsigned k = 0; k < count; ++k)
            add_argument(f, m, i, k, k >= inputs);
        add_scalar(&f->journal, (head){.task = m->tasks[i], .arg_index = count}, 0);
    }
}

/* Pieces of a tensor lie anywhere, with gaps between them. */
static void make_pieces(model *m, result *r, uint64_t whole) {
    uint64_t offset = pick(m, 3);
    while (r->piece_count < PIECES_MAX && offset < whole) {
        uint64_t bytes = 1 + pick(m, whole - offset);
        uint64_t *piece = r->pieces[r->piece_count++];
        piece[0] = offset;
        piece[1] = m->base + pick(m, 200);
        piece[2] = bytes;
        offset += bytes + pick(m, 4);
    }
}

static void add_results(fixture *f, model *m) {
    m->result_count = pick(m, RESULTS_MAX + 1);
    for (size_t i = 0; i < m->result_count; ++i) {
        result *r = &m->results[i];
        r->view = (gbx_tensor){.dtype = dtypes[pick(m, 5)], .ndims = (uint32_t)pick(m, 4)};
        uint64_t rows = 1;
        for (uint32_t d = 0; d < r->view.ndims; ++d) {
            r->view.shape[d] = 1 + (int64_t)pick(m, 5);
            rows *= d + 1 < r->view.ndims ? (uint64_t)r->view.shape[d] : 1;
        }
        make_contiguous(&r->view);
        int64_t length = r->view.ndims ? r->view.shape[r->view.ndims - 1] : 1;
        make_pieces(m, r, rows * (((uint64_t)length * bits_of(r->view.dtype) + 7) / 8));
        add_result(&f->journal,
                   (head){.arg_index = (unsigned)i,
                          .role = 1,
                          .dtype = r->view.dtype,
                          .ndims = r->view.ndims},
                   (tensor_fields){.shape = r->view.shape, .strides = r->view.strides}, NULL,
                   r->pieces[0], r->piece_count);
    }
}

static void make_random(fixture *f, model *m) {
    static const uint64_t bases[] = {0, 0x7e9000001000, 0x7e900000fff0, UINT64_MAX - 1500};
    m->base = bases[pick(m, 4)];
    for (int i = 0; i < POOL; ++i)
        m->pool[i] = make_view(m);
    add_tasks(f, m);
    add_results(f, m);
}

/* --- asking --- */

static void check_argument(const model *m, const argument *a, int64_t element,
                           const gbx_tensor_access *found) {
    size_t task = 0;
    while (m->tasks[task] != a->task)
        ++task;
    bool is_lost = m->is_lost[task];
    assert_false(found->is_result);
    assert_int_equal(found->task, a->task);
    assert_int_equal(found->task_id, is_lost ? 0 : 0x100 + a->task);
    assert_int_equal(found->func_ids[1], is_lost ? UINT32_MAX : 3);
    assert_int_equal(found->arg_index, a->arg_index);
    assert_int_equal(found->role, a->role);
    assert_int_equal(found->element, element);
    assert_memory_equal(&found->tensor, &a->view, sizeof a->view);
}

static uint64_t distance(uint64_t a, uint64_t b) {
    return a < b ? b - a : a - b;
}

/* Whether the second one is the owner rather than the first. */
static bool is_nearer(uint64_t task, const argument *a, const argument *b) {
    static const int ranks[] = {[GBX_ROLE_OUTPUT] = 0, [GBX_ROLE_INOUT] = 1, [GBX_ROLE_INPUT] = 2};
    if (distance(task, a->task) != distance(task, b->task))
        return distance(task, b->task) < distance(task, a->task);
    if (extent_of(&a->view) != extent_of(&b->view))
        return extent_of(&b->view) < extent_of(&a->view);
    return ranks[b->role] < ranks[a->role];
}

/* Inputs come before outputs in the order of entries, and arg_index counts within a stage. */
static void check_owner(fixture *f, model *m, uint64_t task, uint64_t place) {
    const argument *best = NULL;
    bool marked[WINDOW] = {0};
    gbx_tensor_access found;
    marked[place] = true;
    for (size_t i = 0; i < m->argument_count; ++i) {
        const argument *a = &m->arguments[i];
        if (a->task != task && first_marked(m, &a->view, marked) >= 0 &&
            (!best || is_nearer(task, best, a)))
            best = a;
    }
    assert_int_equal(ask_owner(f, task, m->base + place, &found), best != NULL);
    if (best)
        check_argument(m, best, first_marked(m, &best->view, marked), &found);
    m->found += best != NULL;
}

static const argument *find_reader(const model *m, uint64_t task, bool *marked) {
    for (uint64_t at = task + 1; at <= m->tasks[m->task_count - 1]; ++at) {
        for (size_t i = 0; i < m->argument_count; ++i) {
            const argument *a = &m->arguments[i];
            if (a->task == at && a->role != GBX_ROLE_OUTPUT &&
                first_marked(m, &a->view, marked) >= 0)
                return a;
        }
        for (size_t i = 0; i < m->argument_count; ++i)
            if (m->arguments[i].task == at && m->arguments[i].role == GBX_ROLE_OUTPUT)
                unmark(m, &m->arguments[i].view, marked);
    }
    return NULL;
}

/* The element of a result at a byte of its payload, by trying all. */
static uint64_t element_of_byte(const gbx_tensor *view, uint64_t byte) {
    uint64_t number = 0;
    for (int64_t bits = bits_of(view->dtype);; ++number) {
        int64_t bit = position_of(view, (int64_t)number) * bits;
        if ((uint64_t)((bit + bits - 1) / 8) >= byte)
            return number;
    }
}

static bool check_results(const model *m, const bool *marked, bool is_found,
                          const gbx_tensor_access *found) {
    for (size_t i = 0; i < m->result_count; ++i)
        for (uint64_t k = 0; k < m->results[i].piece_count; ++k) {
            const uint64_t *piece = m->results[i].pieces[k];
            for (uint64_t at = 0; at < piece[2]; ++at) {
                if (!marked[piece[1] - m->base + at])
                    continue;
                assert_true(is_found);
                assert_true(found->is_result);
                assert_int_equal(found->arg_index, i);
                assert_int_equal(found->role, GBX_ROLE_OUTPUT);
                assert_string_equal(found->name, i ? "made" : "seen");
                assert_int_equal(found->tensor.data, piece[1] - piece[0]);
                assert_int_equal(found->tensor.dtype, m->results[i].view.dtype);
                assert_int_equal(found->element,
                                 element_of_byte(&m->results[i].view, piece[0] + at));
                return true;
            }
        }
    return false;
}

static void check_next_read(fixture *f, model *m, uint64_t task, uint64_t place, uint64_t bytes) {
    bool marked[WINDOW] = {0};
    gbx_tensor_access found;
    for (uint64_t i = 0; i < bytes && i < WINDOW - place; ++i)
        marked[place + i] = true;
    const argument *reader = find_reader(m, task, marked);
    bool is_found = ask_next(f, task, m->base + place, bytes, &found);
    if (reader) {
        assert_true(is_found);
        check_argument(m, reader, first_marked(m, &reader->view, marked), &found);
        ++m->found;
    } else if (check_results(m, marked, is_found, &found)) {
        ++m->of_results;
    } else {
        assert_false(is_found);
    }
}

static void answers_are_those_of_a_walk_over_all_elements(void **state) {
    (void)state;
    unsigned found = 0, of_results = 0, dumps = is_thread_sanitized() ? DUMPS / 10 : DUMPS;
    for (unsigned i = 0; i < dumps; ++i) {
        fixture *f;
        model *m = calloc(1, sizeof *m);
        assert_non_null(m);
        set_up((void **)&f);
        m->seed = i;
        make_random(f, m);
        finish_dump(f);
        for (int k = 0; k < QUERIES; ++k) {
            uint64_t task = pick(m, m->tasks[m->task_count - 1] + 2), place = pick(m, 500);
            check_owner(f, m, task, place);
            check_next_read(f, m, task, place, pick(m, 10) ? pick(m, 40) : UINT64_MAX);
        }
        found += m->found;
        of_results += m->of_results;
        tear_down((void **)&f);
        free(m);
    }
    assert_in_range(found, dumps * QUERIES / 4, dumps * QUERIES * 2);
    assert_true(of_results > dumps * QUERIES / 40);
}

/* --- single cases --- */

/* A ring of buffers that tasks use in turn: task i writes slot i % 8 and reads the one before. */
static void reused_addresses_belong_to_the_nearest_task(void **state) {
    fixture *f = *state;
    enum { TASKS = 3000, SLOTS = 8, BYTES = 256 };
    for (uint64_t i = 0; i < TASKS; ++i) {
        put_task(f, i);
        put_row(f, i, 0, GBX_ROLE_INPUT, 4096 + (i + SLOTS - 1) % SLOTS * BYTES, GBX_INT8, BYTES,
                1);
        put_row(f, i, 1, GBX_ROLE_OUTPUT, 4096 + i % SLOTS * BYTES, GBX_INT8, BYTES, 1);
        if (i % 100 == 99)
            end_block(&f->journal);
    }
    finish_dump(f);
    for (uint64_t i = SLOTS; i < TASKS - SLOTS; ++i) {
        gbx_tensor_access found;
        assert_true(ask_owner(f, i, 4096 + i % SLOTS * BYTES + 5, &found));
        assert_int_equal(found.task, i + 1);
        assert_int_equal(found.arg_index, 0);
        assert_string_equal(found.name, "x");
        assert_true(ask_owner(f, i, 4096 + (i + 3) % SLOTS * BYTES + 7, &found));
        assert_int_equal(found.task,
                         i + 3); /* it writes there; that the next reads it is farther */
        assert_int_equal(found.arg_index, 1);
        assert_int_equal(found.element, 7);
        assert_null(found.name);
        assert_true(ask_next(f, i, 4096 + i % SLOTS * BYTES + 5, 16, &found));
        assert_int_equal(found.task, i + 1);
        assert_int_equal(found.element, 5);
        assert_false(ask_next(f, i, 4096 + (i + 2) % SLOTS * BYTES, BYTES, &found));
    }
}

static void each_argument_counts_once_as_first_recorded(void **state) {
    fixture *f = *state;
    gbx_tensor_access found;
    put_row(f, 5, 0, GBX_ROLE_INOUT, 1000, GBX_INT8, 8, 1);
    gbx_tensor other = {.data = 2000, .dtype = GBX_INT8, .ndims = 1, .shape = {8}, .strides = {1}};
    put_view(f, (head){.task = 5, .stage = 1, .role = GBX_ROLE_INOUT}, &other);
    finish_dump(f);
    assert_true(ask_owner(f, 4, 1007, &found));
    assert_int_equal(found.task, 5);
    assert_false(ask_owner(f, 4, 1008, &found));
    assert_false(ask_owner(f, 4, 2000, &found));
    assert_false(ask_owner(f, 5, 1000, &found)); /* of another task only */
}

/* Outputs with a gap after each element, in few and in too many pieces. */
static void outputs_with_gaps_overwrite_only_their_bytes(void **state) {
    fixture *f = *state;
    enum { FEW = 5000, MANY = 40000 };
    const uint64_t few = 0x10000, many = 0x100000;
    gbx_tensor_access found;
    put_row(f, 1, 0, GBX_ROLE_OUTPUT, few, GBX_INT8, FEW, 2);
    put_row(f, 2, 0, GBX_ROLE_INPUT, few, GBX_INT8, FEW, 2);
    put_row(f, 3, 0, GBX_ROLE_INPUT, few + 1, GBX_INT8, 1, 1);
    put_row(f, 4, 0, GBX_ROLE_OUTPUT, few + 1, GBX_INT8, FEW, 2);
    put_row(f, 5, 0, GBX_ROLE_INPUT, few, GBX_INT8, 2 * FEW, 1);
    put_row(f, 1, 1, GBX_ROLE_OUTPUT, many, GBX_INT8, MANY, 2);
    put_row(f, 7, 1, GBX_ROLE_OUTPUT, many, GBX_INT8, MANY, 2);
    put_row(f, 8, 1, GBX_ROLE_INPUT, many, GBX_INT8, MANY, 2);
    put_row(f, 9, 1, GBX_ROLE_INPUT, many, GBX_INT8, 1, 1);
    finish_dump(f);
    assert_true(ask_next(f, 0, few, 2 * FEW, &found));
    assert_int_equal(found.task, 3);
    assert_true(ask_next(f, 1, few, 2 * FEW, &found));
    assert_int_equal(found.task, 2);
    assert_true(ask_next(f, 3, few, 2 * FEW, &found));
    assert_int_equal(found.task, 5);
    assert_int_equal(found.element, 0);
    assert_true(ask_next(f, 3, few + 1, 3, &found)); /* few + 2 is left */
    assert_int_equal(found.element, 2);
    assert_false(ask_next(f, 3, few + 1, 1, &found));
    assert_false(ask_next(f, 5, few, 2 * FEW, &found));
    assert_true(ask_next(f, 0, many, 2 * MANY, &found)); /* given up: as if not written */
    assert_int_equal(found.task, 8);
    assert_false(ask_next(f, 0, many, 1000, &found));
}

/* Views from the same first to the same last byte, one of them with gaps. */
static void views_of_the_same_extent_differ(void **state) {
    fixture *f = *state;
    gbx_tensor_access found;
    put_row(f, 1, 0, GBX_ROLE_OUTPUT, 1000, GBX_INT8, 5, 2);
    put_row(f, 2, 0, GBX_ROLE_INPUT, 1000, GBX_INT8, 9, 1);
    finish_dump(f);
    assert_true(ask_next(f, 0, 1000, 9, &found));
    assert_int_equal(found.task, 2);
    assert_int_equal(found.element, 1);
    assert_true(ask_owner(f, 0, 1001, &found));
    assert_int_equal(found.task, 2);
}

/* Rows of a tile are removed whole, not byte by byte: one with many bytes is not given up. */
static void tiles_are_overwritten_row_by_row(void **state) {
    fixture *f = *state;
    gbx_tensor_access found;
    gbx_tensor tile = {
        .data = 0x10000, .dtype = GBX_INT8, .ndims = 2, .shape = {64, 1024}, .strides = {2048, 1}};
    put_view(f, (head){.task = 1, .role = GBX_ROLE_OUTPUT, .stage = 1}, &tile);
    put_row(f, 2, 0, GBX_ROLE_INPUT, 0x10000 + 63 * 2048, GBX_INT8, 1024, 1);
    put_row(f, 3, 0, GBX_ROLE_INPUT, 0x10000 + 1023, GBX_INT8, 2, 1);
    finish_dump(f);
    assert_true(ask_next(f, 0, 0x10000, 64 * 2048, &found));
    assert_int_equal(found.task, 3);
    assert_int_equal(found.element, 1);
}

/* A task reads before it writes, even if the read is recorded afterwards. */
static void a_task_reads_before_it_writes(void **state) {
    fixture *f = *state;
    gbx_tensor_access found;
    gbx_tensor view = {.data = 1000, .dtype = GBX_INT8, .ndims = 1, .shape = {8}, .strides = {1}};
    put_view(f, (head){.task = 1, .arg_index = 0, .role = GBX_ROLE_OUTPUT, .stage = 1}, &view);
    put_view(f, (head){.task = 1, .arg_index = 1, .role = GBX_ROLE_INPUT, .stage = 1}, &view);
    finish_dump(f);
    assert_true(ask_next(f, 0, 1003, 2, &found));
    assert_int_equal(found.arg_index, 1);
    assert_int_equal(found.element, 3);
}

/* Beside good ones: views and pieces that no memory has. */
static void nonsense_is_left_out(void **state) {
    fixture *f = *state;
    const int64_t far = INT64_C(1) << 50;
    gbx_tensor_access found;
    put_row(f, 1, 0, GBX_ROLE_INPUT, UINT64_MAX - 3, GBX_INT8, 8, 1);
    put_row(f, 1, 1, GBX_ROLE_INPUT, 64, GBX_INT8, 2, INT64_C(1) << 60);
    put_row(f, 1, 2, GBX_ROLE_INPUT, 64, GBX_INT64, INT64_MAX, INT64_MAX);
    put_row(f, 1, 3, GBX_ROLE_INPUT, 64, GBX_INT64, 3, -1);
    put_row(f, 1, 4, GBX_ROLE_INPUT, 64, GBX_INT64, 0, 1);
    put_row(f, 2, 0, GBX_ROLE_INPUT, 64, GBX_FLOAT32, 9, far);
    put_row(f, 3, 0, GBX_ROLE_INPUT, 64, GBX_FLOAT32, INT64_MAX / 8, 0);
    gbx_tensor view = {.data = 64, .dtype = GBX_INT8, .start_offset = INT64_MIN};
    put_view(f, (head){.task = 1, .arg_index = 5}, &view);
    static const int64_t shape[] = {4}, stride[] = {1};
    static const uint64_t pieces[] = {2, 900, 2, 4, 901, 1, UINT64_MAX - 9, 800, 9};
    add_result(&f->journal, (head){.arg_index = 1, .role = 1, .dtype = GBX_INT8, .ndims = 1},
               (tensor_fields){.shape = shape, .strides = stride}, NULL, pieces, 3);
    finish_dump(f);
    assert_false(ask_owner(f, 0, UINT64_MAX, &found));
    assert_false(ask_owner(f, 0, UINT64_MAX - 3, &found));
    assert_true(ask_owner(f, 0, 64 + 8 * 4 * (uint64_t)far + 3, &found));
    assert_int_equal(found.task, 2);
    assert_int_equal(found.element, 8);
    assert_false(ask_owner(f, 0, 64 + 8 * 4 * (uint64_t)far + 4, &found));
    assert_true(ask_owner(f, 0, 64, &found));
    assert_int_equal(found.task, 2);
    assert_true(ask_owner(f, 5, 64, &found));
    assert_int_equal(found.task, 3);
    assert_int_equal(found.element, 0);
    assert_false(ask_next(f, 0, 64, 0, &found));
    assert_true(ask_next(f, 0, 0, UINT64_MAX, &found));
    assert_int_equal(found.task, 2);
    assert_true(ask_next(f, UINT64_MAX, 0, UINT64_MAX, &found));
    assert_true(found.is_result);
    assert_int_equal(found.element, 2);
    assert_int_equal(found.tensor.data, 898);
    assert_true(ask_next(f, 3, 901, UINT64_MAX, &found));
    assert_int_equal(found.element, 3);
    assert_false(ask_next(f, 3, 902, 1, &found));
    assert_false(ask_next(f, 3, 800, 9, &found));
}

static void an_empty_dump_has_no_answers(void **state) {
    fixture *f = *state;
    gbx_tensor_access found;
    put_task(f, 1);
    finish_dump(f);
    assert_false(ask_owner(f, 0, 0, &found));
    assert_false(ask_next(f, 0, 0, UINT64_MAX, &found));
    gbx_accesses_destroy(NULL);
}

/* The manifest of another tool; without an address, 0 must not count as one. */
static void a_dump_without_addresses_has_no_answers(void **state) {
    fixture *f = *state;
    static const char manifest[] =
        "{\"tensors\": [{\"task_id\": \"0x1\", \"arg_index\": 0, \"role\": \"input\", "
        "\"stage\": \"before_dispatch\", \"dtype\": \"int8\", \"shape\": [64]}]}";
    char path[256];
    gbx_tensor_access found;
    path_in(&f->dump, "tensor_dump.json", path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(manifest, file) >= 0);
    assert_int_equal(fclose(file), 0);
    open_dump(f);
    assert_int_equal(gbx_entries_count(f->entries), 1);
    assert_false(ask_owner(f, 7, 0, &found));
    assert_false(ask_next(f, 7, 0, UINT64_MAX, &found));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_a_walk_over_all_elements),
        cmocka_unit_test_setup_teardown(reused_addresses_belong_to_the_nearest_task, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(each_argument_counts_once_as_first_recorded, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(outputs_with_gaps_overwrite_only_their_bytes, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(views_of_the_same_extent_differ, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tiles_are_overwritten_row_by_row, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_task_reads_before_it_writes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nonsense_is_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_dump_has_no_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dump_without_addresses_has_no_answers, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
