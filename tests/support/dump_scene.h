/*
 * Graphs for tests of the dump (kernels/dump_plan.h): built call by call, run on a chip with a
 * dump, and run again on the sequential model to compare with the dump.
 *
 *     dump_scene *scene = scene_create(1 << 20);
 *     plan_task *task = scene_add(scene, gbx_aiv(STEP), STEP_WRITE);
 *     scene_arg(scene, task, GBX_ROLE_OUTPUT, scene_tensor(scene, GBX_FLOAT32, 2, shape));
 *     ...
 *     scene_check(scene, chip, runtime, &config, &rules);
 */
#ifndef GBX_TESTS_DUMP_SCENE_H
#define GBX_TESTS_DUMP_SCENE_H

#include "chip_support.h"
#include "dump_expect.h"
#include "kernels/dump_plan.h"

/* Kernels, by func_id: those of dump_step.c first. */
enum {
    STEP = 3,     /* on AIV, declares nothing */
    STEP_AIC = 4, /* on AIC, likewise */
    DECLARED = 7, /* on AIV, with the signature and names below */
    WIDE = 11,    /* on AIV, likewise */
    IDLE = 8,     /* dump_idle.c, on AIV */
    SAVE = 9,     /* save_args.c, on AIV */
    SAVE_AIC = 10,
    SCENE_BLOCKS = 4,
    SCENE_RUNTIMES = 3,
};

#define DECLARED_SIGNATURE                                                                         \
    "in,scalar:float32,scalar:float16,inout,scalar:bfloat16,scalar:float64,scalar:int8,"           \
    "scalar:uint8,scalar:int16,scalar:uint16,scalar:int32,scalar:uint32,scalar:int64,"             \
    "scalar:uint64,scalar:bool,scalar:float8_e4m3,scalar:float8_e5m2,scalar:int4,scalar"
#define DECLARED_NAMES                                                                             \
    "control,f32,f16,state,bf16,f64,i8,u8,i16,u16,i32,u32,i64,u64,truth,e4m3,e5m2,i4,word"
enum { DECLARED_SCALARS = 17 };
#define WIDE_SIGNATURE "in,inout,in,out,scalar:float32,scalar:float16"
#define WIDE_NAMES "control,state,weights,result,scale,bias"

/* In the order of plan_runtime. */
extern const char *const scene_runtimes[SCENE_RUNTIMES];

typedef struct dump_scene {
    plan *graph;
    uint8_t *memory;  /* what a run works on */
    uint8_t *initial; /* what it holds before */
    size_t memory_bytes;
    size_t used;
    dump_kernels kernels;
    void *libraries[4]; /* dump_step.c, dump_idle.c, save_args.c, dump_orchestration.c, here */
} dump_scene;

/* Memory with random bytes, and no tasks. */
dump_scene *scene_create(size_t memory_bytes);
void scene_destroy(dump_scene *scene);

/* A chip of a variant with the kernels; `threads` 0 for the default. */
gbx_chip *scene_chip(const dump_scene *scene, const chip_variant *variant, uint32_t threads);
void scene_close(gbx_chip *chip);

/* A test whose chips are closed when it fails: address slots for chips are few, and later tests
 * need them. */
#define scene_test(function) cmocka_unit_test_teardown(function, scene_close_all)
int scene_close_all(void **state);

/* --- graphs --- */

/* Removes all tasks and tensors; initial memory stays. */
void scene_clear(dump_scene *scene);

/* A task that follows all earlier ones; its first tensor is its control. */
plan_task *scene_add(dump_scene *scene, gbx_task_kernels kernels, step_mode mode);
/* The same without a control or any other tensor yet, for other kernels. */
plan_task *scene_add_plain(dump_scene *scene, gbx_task_kernels kernels);
/* With a control, but independent of all other tasks. */
plan_task *scene_add_free(dump_scene *scene, gbx_task_kernels kernels, step_mode mode);

/* A row-major tensor in its own memory. */
gbx_tensor scene_tensor(dump_scene *scene, gbx_dtype dtype, uint32_t ndims, const int64_t *shape);
gbx_tensor scene_matrix(dump_scene *scene, gbx_dtype dtype, int64_t rows, int64_t columns);
/* One element inside a matrix: a tensor of 0 dimensions. */
gbx_tensor scene_element(dump_scene *scene, gbx_dtype dtype);
/* A view with one dimension reversed. */
gbx_tensor scene_flipped(gbx_tensor view, uint32_t dim);
/* Views may have any strides; the role is noted in the control, if there is one. */
void scene_arg(dump_scene *scene, plan_task *task, gbx_role role, gbx_tensor view);
void scene_scalar(plan_task *task, gbx_dtype dtype, uint64_t bits);
step_control *scene_control(dump_scene *scene, const plan_task *task);

/* A task for each dtype, with inputs, outputs and inouts of several forms. */
void scene_add_all_dtypes(dump_scene *scene);

/* --- runs --- */

/* The plan, as tensor PLAN_TENSOR, and the memory, as PLAN_MEMORY. */
void scene_run_tensors(const dump_scene *scene, gbx_run_tensor tensors[2]);

/* Runs it and captures stderr; the dump goes to a new directory. All of `config` except the
 * directory comes from the caller. The caller frees *out_log. */
gbx_status scene_run(dump_scene *scene, gbx_chip *chip, int runtime, gbx_call_config config,
                     char out_directory[DUMP_PATH_BYTES], gbx_call_result *out_result,
                     char **out_log);

/* The model runs the graph, and every record is compared with it. */
void scene_compare(dump_scene *scene, int runtime, const dump_files *files,
                   const dump_rules *rules);

/* A successful run that logs nothing, and whose memory and dump equal the model's. The caller ends
 * it with scene_drop. */
void scene_check(dump_scene *scene, gbx_chip *chip, int runtime, const gbx_call_config *config,
                 const dump_rules *rules, dump_files *out_files);
void scene_drop(dump_files *files);

/* A full dump. */
gbx_call_config scene_full_config(void);
dump_rules scene_full_rules(const dump_scene *scene);

#endif
