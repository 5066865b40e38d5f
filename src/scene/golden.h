/*
 * What is expected of a case: a function of the scene's, in C or in Python, that computes the
 * outputs of the whole graph from its inputs.
 */
#ifndef GBX_SCENE_GOLDEN_H
#define GBX_SCENE_GOLDEN_H

#include "scene/case_data.h"

typedef struct gbx_golden {
    const gbx_scene_program *program;
    void *library;                         /* C: what was loaded */
    int (*function)(const gbx_run_args *); /* C: its entry; NULL for Python */
} gbx_golden;

/* Compiles and loads a golden in C; one in Python is only looked at when it runs. */
GBX_MUST_USE gbx_status gbx_golden_open(const gbx_scene_program *program, gbx_golden *out_golden);
void gbx_golden_close(gbx_golden *golden);

/*
 * Computes data->golden (gbx_case_data_add_golden has been called). A golden in C runs in this
 * process and thread: a fatal signal in it ends the process (guard.h). One in Python runs in a
 * process of its own.
 */
GBX_MUST_USE gbx_status gbx_golden_run(const gbx_golden *golden, gbx_case_data *data);

/* The Python part of it; `program` is a .py file. */
GBX_MUST_USE gbx_status gbx_golden_run_python(const gbx_scene_program *program,
                                              gbx_case_data *data);

#endif
