/*
 * Kernels that overwrite the memory of the dump, descriptions of tensors and other global memory.
 * The host finishes in time and the dump opens. Each record either equals that of an undisturbed
 * run, or the damage is reported: counted as lost, skipped, or found by verify. Only chips in a
 * process.
 */
#include "dump_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dump/abi.h"
#include "kernels/dump_damage.h"
#include "store/verify/verify.h"

enum {
    DAMAGER = 20, /* func_id */
    BEFORE = 12,
    AFTER = 8,
    ARENA_BYTES = 256 << 10,
    LARGE_BYTES = 100 << 10, /* larger than the arena: copied in pieces */
    LONGEST_SECONDS = 600
};

/* --- the graph --- */

static gbx_tensor vector(dump_scene *scene, gbx_dtype dtype, int64_t count) {
    return scene_tensor(scene, dtype, 1, &count);
}

static void add_step(dump_scene *scene, int number, gbx_tensor chain, gbx_tensor large) {
    plan_task *task = scene_add(scene, gbx_aiv(STEP), STEP_WRITE);
    scene_arg(scene, task, GBX_ROLE_INOUT, chain);
    scene_arg(scene, task, GBX_ROLE_OUTPUT, vector(scene, GBX_INT32, 333));
    if (number % 8 == 3)
        scene_arg(scene, task, GBX_ROLE_INOUT, large);
    scene_scalar(task, GBX_INT32, (uint64_t)number);
}

/* A chain: when the damage is done, all tasks before it are recorded and none after it. */
static void make_graph(dump_scene *scene) {
    scene_clear(scene);
    gbx_tensor chain = vector(scene, GBX_INT32, 512);
    gbx_tensor large = vector(scene, GBX_UINT8, LARGE_BYTES);
    for (int i = 0; i < BEFORE; ++i)
        add_step(scene, i, chain, large);
    plan_task *damager = scene_add_plain(scene, gbx_aiv(DAMAGER));
    scene_arg(scene, damager, GBX_ROLE_INPUT, vector(scene, GBX_UINT64, DAMAGE_WORDS));
    scene_arg(scene, damager, GBX_ROLE_INOUT, vector(scene, GBX_UINT8, 1000));
    damager->after[damager->after_count++] = BEFORE - 1;
    for (int i = BEFORE + 1; i < BEFORE + 1 + AFTER; ++i)
        add_step(scene, i, chain, large);
    /* All later tasks wait for it, on every runtime. */
    scene_arg(scene, damager, GBX_ROLE_INPUT, chain);
}

static gbx_chip *damage_chip(const dump_scene *scene, const chip_variant *variant) {
    gbx_chip *chip = open_chip(variant, SCENE_BLOCKS);
    assert_ok(gbx_kernel_register(chip, &scene->kernels.facts[STEP]));
    register_kernel(chip, DAMAGER, GBX_CORE_AIV, "dump_damage.c");
    return chip;
}

static gbx_status run_damaged(dump_scene *scene, const chip_variant *variant, int runtime,
                              const damage *how, char directory[DUMP_PATH_BYTES],
                              gbx_call_result *out_result) {
    gbx_call_config config = {.timeout_ms = 20000,
                              .enable_dump_tensor = GBX_DUMP_FULL,
                              .enable_dump_args = true,
                              .dump = {.arena_bytes = ARENA_BYTES, .has_stats = true}};
    char *log;
    memcpy(scene->initial + scene->graph->tasks[BEFORE].tensors[0].view.data, how, sizeof *how);
    if (how->part != DAMAGE_NOTHING && how->part != DAMAGE_DESCRIPTION) { /* which does not hang */
        config.timeout_ms = 500;
        config.dump.stall_timeout_ms = 100;
    }
    gbx_chip *chip = damage_chip(scene, variant);
    gbx_status status = scene_run(scene, chip, runtime, config, directory, out_result, &log);
    gbx_chip_close(chip);
    free(log);
    return status;
}

/* --- the dump afterwards --- */

static bool are_same(const dump_files *a, const json_t *x, const dump_files *b, const json_t *y) {
    static const char *const fields[] = {"role",         "kind",  "dtype", "shape",  "strides",
                                         "start_offset", "numel", "bits",  "func_id"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; ++i) {
        const json_t *p = json_object_get(x, fields[i]);
        const json_t *q = json_object_get(y, fields[i]);
        if ((p || q) && !json_equal(p, q))
            return false;
    }
    uint64_t bytes = dump_number(x, "bin_size");
    return bytes == dump_number(y, "bin_size") &&
           (bytes == 0 || memcmp(dump_payload(a, x), dump_payload(b, y), bytes) == 0);
}

/* The argument that selects the damage differs in the undisturbed run. */
static bool is_expected_to_differ(const json_t *entry) {
    return dump_number(entry, "task_seq") == BEFORE && dump_number(entry, "arg_index") == 0;
}

/* Counts records that differ from the undisturbed run or are not in it, except those in flight. */
static size_t count_wrong(const dump_files *good, const dump_files *bad) {
    size_t wrong = 0;
    for (size_t i = 0; i < dump_entry_count(bad); ++i) {
        const json_t *entry = dump_entry(bad, i);
        const json_t *wanted = dump_find(good, dump_number(entry, "task_seq"),
                                         (uint32_t)dump_number(entry, "arg_index"),
                                         !strcmp(dump_text(entry, "stage"), "after_completion"));
        if (!dump_bool(entry, "in_flight") && !is_expected_to_differ(entry))
            wrong += !wanted || !are_same(good, wanted, bad, entry);
    }
    return wrong;
}

static size_t count_missing(const dump_files *good, const dump_files *bad) {
    size_t missing = 0;
    for (size_t i = 0; i < dump_entry_count(good); ++i) {
        const json_t *entry = dump_entry(good, i);
        missing += !dump_find(bad, dump_number(entry, "task_seq"),
                              (uint32_t)dump_number(entry, "arg_index"),
                              !strcmp(dump_text(entry, "stage"), "after_completion"));
    }
    return missing;
}

/* How many findings verify has; none of them may concern the files themselves. */
static size_t verify(const char *directory, const char *what) {
    gbx_verification verification;
    assert_ok(gbx_dump_verify(directory, NULL, &verification));
    size_t count = verification.findings.count;
    for (size_t i = 0; i < count; ++i) {
        const gbx_finding *finding = &verification.findings.items[i];
        if (finding->kind == GBX_FINDING_JOURNAL || finding->kind == GBX_FINDING_MANIFEST ||
            finding->kind == GBX_FINDING_FILE || finding->kind == GBX_FINDING_COUNT ||
            finding->kind == GBX_FINDING_TASK)
            fail_msg("%s: %s: %s", what, gbx_name_of(&gbx_finding_kinds, finding->kind),
                     finding->what);
    }
    gbx_verification_free(&verification);
    return count;
}

/*
 * What the dump says it holds and lacks is what its tasks announce. The undisturbed run has nothing
 * but arguments that were announced; a run that ended by itself has announced as many.
 */
static void check_sums(const char *what, const char *directory, const dump_files *good,
                       gbx_code code) {
    gbx_reader *reader;
    uint64_t found, lost = 0, skipped = 0;
    bool is_least = false;
    assert_ok(gbx_reader_open(directory, GBX_INDEX_ARGUMENTS, &reader));
    const gbx_reader_totals *totals = gbx_reader_get_totals(reader);
    for (uint64_t i = 0; i < totals->losses; ++i) {
        const gbx_record *record;
        uint64_t arguments = 0;
        assert_ok(gbx_reader_list_at(reader, GBX_LIST_LOSSES, i, &record));
        const gbx_record_loss *loss = (const gbx_record_loss *)(const void *)record;
        assert_true(gbx_record_get_lost_arguments(loss, &arguments));
        lost += arguments;
        is_least |= loss->is_least != 0;
    }
    for (uint64_t i = 0; i < totals->skipped; ++i) {
        const gbx_record *record;
        assert_ok(gbx_reader_list_at(reader, GBX_LIST_SKIPPED, i, &record));
        skipped += record->arg_index != GBX_ARG_NONE;
    }
    found = totals->records + totals->in_flight + skipped + lost;
    const gbx_record_sums *sums = gbx_reader_sums(reader);
    if (!sums && !is_least)
        fail_msg("%s: the sums are unknown, but the dump does not say so", what);
    if (sums && sums->announced != found)
        fail_msg("%s: %llu arguments are announced, %llu found", what,
                 (unsigned long long)sums->announced, (unsigned long long)found);
    bool has_ended = code == GBX_OK || code == GBX_LOST;
    if (has_ended && (is_least || found != dump_entry_count(good)))
        fail_msg("%s: %llu arguments are recorded or lost, but the tasks have %zu", what,
                 (unsigned long long)found, dump_entry_count(good));
    gbx_reader_close(reader);
}

static void check_left(const char *what, const char *directory, const dump_files *good,
                       uint64_t part, const gbx_call_result *result, gbx_code code) {
    dump_files bad;
    size_t findings = verify(directory, what);
    dump_files_open(directory, &bad);
    if (!bad.tensors || !bad.kernel_args)
        fail_msg("%s: there is no manifest", what);
    /* Random stores also change what kernels read; then the dump correctly shows those values. */
    bool is_anywhere = part == DAMAGE_ANYWHERE || part == DAMAGE_PAGE;
    size_t wrong = is_anywhere ? 0 : count_wrong(good, &bad);
    size_t missing = count_missing(good, &bad);
    check_sums(what, directory, good, code);
    if (part == DAMAGE_DESCRIPTION && (wrong || missing || result->dump.skipped || code != GBX_OK))
        fail_msg("%s: %zu records are wrong and %zu missing", what, wrong, missing);
    bool is_reported = code != GBX_OK || result->dump.skipped > 0;
    if (wrong && !is_reported && !findings)
        fail_msg("%s: %zu records are wrong, but this was not reported", what, wrong);
    if (missing && !is_reported)
        fail_msg("%s: %zu records are missing, but this was not reported", what, missing);
    /* A run that ended by itself, with or without an error, lost nothing. */
    bool is_complete = result->dump.dropped == 0 && code != GBX_DEVICE_LOST;
    if (dump_bool(bad.tensors, "complete") != is_complete)
        fail_msg("%s: the dump says that it is %s", what,
                 is_complete ? "not complete" : "complete");
    dump_files_close(&bad);
}

/* --- all damages --- */

typedef struct attack {
    dump_scene *scene;
    const chip_variant *variant;
    dump_files good[SCENE_RUNTIMES]; /* runtimes differ in the dtypes of scalars */
    int runtime;                     /* of the next strike */
    unsigned strikes;                /* including those left out */
} attack;

static void begin(const chip_variant *variant, attack *it) {
    const damage nothing = {.part = DAMAGE_NOTHING};
    gbx_call_result result;
    *it = (attack){.scene = scene_create(1 << 20), .variant = variant};
    make_graph(it->scene);
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime) {
        char directory[DUMP_PATH_BYTES];
        assert_ok(run_damaged(it->scene, variant, runtime, &nothing, directory, &result));
        assert_int_equal(result.dump.dropped, 0);
        assert_int_equal(verify(directory, "undisturbed"), 0);
        dump_files_open(directory, &it->good[runtime]);
        dump_check_itself(&it->good[runtime]);
    }
}

static void end(attack *it) {
    for (int runtime = 0; runtime < SCENE_RUNTIMES; ++runtime)
        scene_drop(&it->good[runtime]);
    scene_destroy(it->scene);
}

static void strike(attack *it, damage how) {
    if (is_thread_sanitized() && it->strikes++ % 5 > 1)
        return;
    char what[320], directory[DUMP_PATH_BYTES];
    gbx_call_result result;
    int runtime = it->runtime++ % SCENE_RUNTIMES;
    int64_t start_ns = gbx_clock_ns();
    gbx_status status = run_damaged(it->scene, it->variant, runtime, &how, directory, &result);
    gbx_code code = status ? gbx_status_code(status) : GBX_OK;
    snprintf(what, sizeof what, "%s: part %d, way %d, offset %d, %d words, value 0x%llx: %.200s",
             scene_runtimes[runtime], (int)how.part, (int)how.way, (int)how.offset, (int)how.count,
             (unsigned long long)how.value, status ? gbx_status_message(status) : "ok");
    gbx_status_free(status);
    if (gbx_clock_ns() - start_ns > LONGEST_SECONDS * GBX_NS_PER_SECOND)
        fail_msg("%s: took too long", what);
    if (code != GBX_OK && code != GBX_LOST && code != GBX_DEVICE_FAULT && code != GBX_DEVICE_HUNG &&
        code != GBX_DEVICE_LOST)
        fail_msg("%s: fails with code %d", what, (int)code);
    check_left(what, directory, &it->good[runtime], how.part, &result, code);
    dump_directory_remove(directory);
}

enum {
    LINE_WORDS = GBX_DUMP_LINE_BYTES / 8,
    OPEN_WORDS = 16 * LINE_WORDS, /* words of an open buffer that are tested */
    ALL_LINES = GBX_DEFAULT_AICPU_THREADS * GBX_DEFAULT_DUMP_BUFFERS * (int)GBX_DUMP_BUFFER_LINES
};

/* One word in each line of all buffers of all lanes, except those that the device is filling. */
static void strike_lines(attack *it, uint64_t word, damage_way way, uint64_t value) {
    strike(it, (damage){.part = DAMAGE_BUFFERS,
                        .way = way,
                        .offset = 8 * word,
                        .count = ALL_LINES,
                        .step = LINE_WORDS,
                        .value = value,
                        .lane_bytes = sizeof(gbx_dump_lane),
                        .open_item_offset = offsetof(gbx_dump_lane, open_item)});
}

static void test_lines(void **state) {
    attack it;
    begin(*state, &it);
    for (uint64_t word = 0; word < LINE_WORDS; ++word) {
        strike_lines(&it, word, DAMAGE_SET, UINT64_MAX);
        strike_lines(&it, word, DAMAGE_FLIP, UINT64_C(1) << 54);
        strike_lines(&it, word, DAMAGE_FLIP, 1);
    }
    for (uint64_t byte = 0; byte < 8; ++byte)
        strike_lines(&it, 0, DAMAGE_FLIP, UINT64_C(0x80) << 8 * byte);
    strike_lines(&it, 1, DAMAGE_FLIP, UINT64_C(1) << 43); /* of a task number */
    end(&it);
}

static void strike_all_lines(attack *it, uint64_t word, damage_way way, uint64_t value) {
    strike(it, (damage){.part = DAMAGE_BUFFERS,
                        .way = way,
                        .offset = 8 * word,
                        .count = ALL_LINES,
                        .step = LINE_WORDS,
                        .value = value});
}

/* Also those that the device is filling: it writes them again before it hands them over. */
static void test_open_lines(void **state) {
    attack it;
    begin(*state, &it);
    for (uint64_t word = 0; word < LINE_WORDS; ++word)
        strike_all_lines(&it, word, word % 2 ? DAMAGE_SET : DAMAGE_RANDOM, UINT64_MAX >> word);
    /* Only one word, so that all records before the first invalid one are read. */
    for (uint64_t word = 0; word < OPEN_WORDS; word += 3)
        strike(&it, (damage){.part = DAMAGE_OPEN_BUFFERS,
                             .way = DAMAGE_FLIP,
                             .offset = 8 * word,
                             .value = UINT64_C(1) << 54,
                             .lane_bytes = sizeof(gbx_dump_lane),
                             .open_item_offset = offsetof(gbx_dump_lane, open_item)});
    end(&it);
}

static void strike_lane(attack *it, size_t offset, damage_way way, uint64_t value) {
    strike(it, (damage){.part = DAMAGE_LANES,
                        .way = way,
                        .offset = offset,
                        .count = GBX_DEFAULT_AICPU_THREADS,
                        .step = sizeof(gbx_dump_lane) / 8,
                        .value = value});
}

static void test_lanes(void **state) {
    static const size_t fields[] = {
        offsetof(gbx_dump_lane, free.tail),   offsetof(gbx_dump_lane, free.seen_head),
        offsetof(gbx_dump_lane, free.head),   offsetof(gbx_dump_lane, free.seen_tail),
        offsetof(gbx_dump_lane, ready.tail),  offsetof(gbx_dump_lane, ready.seen_head),
        offsetof(gbx_dump_lane, ready.head),  offsetof(gbx_dump_lane, ready.seen_tail),
        offsetof(gbx_dump_lane, free_slots),  offsetof(gbx_dump_lane, ready_slots),
        offsetof(gbx_dump_lane, open_item),   offsetof(gbx_dump_lane, counts.stall_ns),
        offsetof(gbx_dump_lane, counts.lost), offsetof(gbx_dump_lane, counts_check),
        offsetof(gbx_dump_lane, open_check),  offsetof(gbx_dump_lane, arena_head)};
    attack it;
    begin(*state, &it);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; ++i) {
        strike_lane(&it, fields[i], DAMAGE_SET, UINT64_MAX);
        strike_lane(&it, fields[i], DAMAGE_ADD, 1);
    }
    end(&it);
}

static void test_complete_parts(void **state) {
    static const struct {
        damage_part part;
        uint64_t bytes;
    } parts[] = {{DAMAGE_SETUP, sizeof(gbx_dump_setup)},
                 {DAMAGE_LANES, GBX_DEFAULT_AICPU_THREADS * sizeof(gbx_dump_lane)},
                 {DAMAGE_ARENAS, GBX_DEFAULT_AICPU_THREADS * ARENA_BYTES}};
    attack it;
    begin(*state, &it);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i)
        for (int way = 0; way < 3; ++way)
            strike(&it, (damage){.part = parts[i].part,
                                 .way = way == 2 ? DAMAGE_RANDOM : DAMAGE_SET,
                                 .count = parts[i].bytes / 8,
                                 .step = 1,
                                 .value = way == 1 ? UINT64_MAX : 0});
    end(&it);
}

static void test_description(void **state) {
    static const uint64_t values[] = {UINT64_MAX, UINT64_C(1) << 54, 0x1100000003};
    attack it;
    begin(*state, &it);
    for (uint64_t word = 0; word < 6; ++word) /* address, size, dtype and ndims, offset, shape */
        for (size_t v = 0; v < sizeof values / sizeof values[0]; ++v)
            strike(&it, (damage){.part = DAMAGE_DESCRIPTION,
                                 .way = DAMAGE_SET,
                                 .offset = 8 * word,
                                 .count = 1,
                                 .step = 1,
                                 .value = values[v]});
    end(&it);
}

static void test_anywhere(void **state) {
    attack it;
    begin(*state, &it);
    for (uint64_t seed = 1; seed <= 12; ++seed)
        strike(&it, (damage){.part = DAMAGE_ANYWHERE,
                             .way = DAMAGE_RANDOM,
                             .count = seed % 2 ? 2000 : 50,
                             .step = (UINT64_C(1) << (16 + seed % 8)) / 8,
                             .value = seed * 1000});
    end(&it);
}

/* 4 KiB anywhere. */
static void test_pages(void **state) {
    attack it;
    uint64_t seeds = getenv("GLASSBOX_STRESS") ? 1500 : 45;
    begin(*state, &it);
    for (uint64_t seed = 1; seed <= seeds; ++seed)
        strike(&it, (damage){.part = DAMAGE_PAGE,
                             .way = seed % 3 ? DAMAGE_RANDOM : DAMAGE_SET,
                             .count = 512,
                             .value = seed});
    end(&it);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),       cmocka_unit_test(test_open_lines),
        cmocka_unit_test(test_lanes),       cmocka_unit_test(test_complete_parts),
        cmocka_unit_test(test_description), cmocka_unit_test(test_anywhere),
        cmocka_unit_test(test_pages),
    };
    return RUN_OVER_PROCESS_VARIANTS(tests);
}
