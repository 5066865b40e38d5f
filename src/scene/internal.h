/* What the files in src/scene share. */
#ifndef GBX_SCENE_INTERNAL_H
#define GBX_SCENE_INTERNAL_H

#include <pthread.h>
#include <signal.h>

#include <glassbox/runtime.h>

#include "scene/scene.h"
#include "text/json_reader.h"

/* --- scene.c and scene_cases.c: reading scene.json --- */

#define GBX_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* An optional string; NULL when it is absent. */
GBX_MUST_USE gbx_status gbx_field_text(const gbx_cursor *object, const char *name,
                                       const char **out_text);

/* An optional number that is not negative; -1 when it is absent. */
GBX_MUST_USE gbx_status gbx_field_tolerance(const gbx_cursor *object, const char *name,
                                            double *out_value);

/* The path of an existing file, usable from the working directory; the caller frees it. */
GBX_MUST_USE gbx_status gbx_field_file(const gbx_cursor *field, const gbx_scene *scene,
                                       char **out_path);

/* A string that is not empty. */
GBX_MUST_USE gbx_status gbx_field_name(const gbx_cursor *field, const char **out_text);

/* Zeroed memory for an array of `what`. */
GBX_MUST_USE gbx_status gbx_field_allocate(size_t count, size_t size, const char *what,
                                           void *out_pointer);

/* A string that is a brief name of gbx_parameters or a smaller set: its number. */
GBX_MUST_USE gbx_status gbx_field_choice(const gbx_cursor *field, const gbx_name_set *set,
                                         uint32_t *out_number);

GBX_MUST_USE gbx_status gbx_scene_read_cases(const gbx_cursor *root, gbx_scene *scene);

void gbx_scene_free_cases(gbx_scene *scene);

/* --- case_data.c --- */

/*
 * The arguments of a case in host memory, for runs and for the golden. Inputs are filled once and
 * are read-only from then on; inouts and outputs are restored before each run.
 */
typedef struct gbx_case_data {
    const gbx_scene_case *source;
    const gbx_scene_arg *args[GBX_MAX_RUN_TENSORS]; /* of each tensor */
    gbx_run_tensor tensors[GBX_MAX_RUN_TENSORS];
    gbx_tensor golden[GBX_MAX_RUN_TENSORS]; /* shares the inputs with the run */
    uint64_t scalars[GBX_MAX_RUN_SCALARS];
    const char *scalar_names[GBX_MAX_RUN_SCALARS];
    gbx_dtype scalar_dtypes[GBX_MAX_RUN_SCALARS];
    uint32_t tensor_count;
    uint32_t scalar_count;
    bool has_golden; /* `golden` is filled in */
} gbx_case_data;

/* Allocates memory and fills the inputs; the caller frees it, even after a failure. */
GBX_MUST_USE gbx_status gbx_case_data_create(const gbx_scene *scene, const gbx_scene_case *one,
                                             gbx_case_data *out_data);
void gbx_case_data_free(gbx_case_data *data);

/* Sets outputs and inouts to what they are before a run. */
GBX_MUST_USE gbx_status gbx_case_data_restore(gbx_case_data *data);

/* Allocates the golden's outputs and inouts: outputs poisoned, inouts as before a run. */
GBX_MUST_USE gbx_status gbx_case_data_add_golden(gbx_case_data *data);

static inline bool gbx_case_data_is_output(const gbx_case_data *data, uint32_t index) {
    return data->args[index]->role != GBX_ROLE_INPUT;
}

/* --- golden.c --- */

/*
 * The golden: a function of the scene, in C or in Python, that computes the expected outputs of the
 * graph from its inputs.
 */
typedef struct gbx_golden {
    const gbx_scene_program *program;
    void *library;                         /* C: the shared object */
    int (*function)(const gbx_run_args *); /* C: its entry; NULL for Python */
} gbx_golden;

/* Compiles and loads a golden in C; one in Python is read only when it runs. */
GBX_MUST_USE gbx_status gbx_golden_open(const gbx_scene_program *program, gbx_golden *out_golden);
void gbx_golden_close(gbx_golden *golden);

/*
 * Computes data->golden (gbx_case_data_add_golden has been called). A golden in C runs in this
 * process and thread: a fatal signal in it ends the process (gbx_guard). One in Python runs in a
 * process of its own.
 */
GBX_MUST_USE gbx_status gbx_golden_run(const gbx_golden *golden, gbx_case_data *data);

/* --- guard.c --- */

/*
 * Guards user code that runs in this process: a fatal signal in it ends the process with exit code
 * 3 and one sentence that names the code.
 */
enum { GBX_GUARD_SIGNALS = 5, GBX_GUARD_TEXT_BYTES = 512, GBX_GUARD_EXIT_CODE = 3 };

/* The caller owns it and must not move it between begin and end; one at a time in a process. */
typedef struct gbx_guard {
    pthread_t thread;
    char text[GBX_GUARD_TEXT_BYTES]; /* "glassbox run: golden.c: golden() was killed by signal " */
    size_t text_size;
    struct sigaction previous[GBX_GUARD_SIGNALS];
    stack_t previous_stack;
    void *stack;
} gbx_guard;

/*
 * Between begin and end the guard handles fatal signals of this thread; those of other threads go
 * to the previous handlers. `what` names the code: "golden.c: golden()".
 */
GBX_MUST_USE gbx_status gbx_guard_begin(gbx_guard *guard, const char *what);
void gbx_guard_end(gbx_guard *guard);

#endif
