/* Shared by orchestrations.c and its tests. */
#ifndef GBX_TESTS_ORCHESTRATIONS_H
#define GBX_TESTS_ORCHESTRATIONS_H

/* Kernels; each is named after its file. */
enum {
    STEP = 1,     /* step.c, on AIV */
    STEP_AIC = 2, /* on AIC */
    MEET = 3,     /* meet.c, on AIV */
    MEET_AIC = 4, /* on AIC */
    WIDE = 5,     /* wide.c, on AIV */
    FAULT = 7     /* fault.c, on AIV */
};

/* Scalars of every run. The orchestrations build the same graph on each runtime. */
enum { RUNTIME_AT = 0, BEFORE_AT = 1, CASE_AT = 2, COUNT_AT = 3, RUN_SCALARS = 4 };

/* Runtimes, the values of the first scalar. */
enum { ON_HOST = 0, ON_AICPU = 1, ON_TENSORMAP = 2 };

/*
 * The only tensor of every run: cells of int64. Cell 0 is for chains, the cells from BAD_AT for the
 * wrong task, those from PRELUDE_AT for the tasks before it, in turn.
 */
enum { BAD_AT = 8, PRELUDE_AT = 32, PRELUDE_CELLS = 64, CELLS = 128 };

/* Every entry; the scalars `COUNT_AT` and `CASE_AT` give the number of tasks and the case. */
#define ORCHESTRATIONS(X)                                                                          \
    X(empty)                                                                                       \
    X(chain)                                                                                       \
    X(many_independent)                                                                            \
    X(bad_kernels)                                                                                 \
    X(bad_tensor)                                                                                  \
    X(too_many_arguments)                                                                          \
    X(bad_tensor_info)                                                                             \
    X(bad_mark)                                                                                    \
    X(good_marks)                                                                                  \
    X(own_error)                                                                                   \
    X(bad_index)                                                                                   \
    X(refused)                                                                                     \
    X(bad_edge)                                                                                    \
    X(cycle)                                                                                       \
    X(bad_publishing)                                                                              \
    X(bad_scope)                                                                                   \
    X(bad_memory)                                                                                  \
    X(scope_of_outputs)                                                                            \
    X(scope_of_many_tensors)                                                                       \
    X(scopes_of_sizes)                                                                             \
    X(nested_scopes)                                                                               \
    X(mixes_that_meet)                                                                             \
    X(read_result)                                                                                 \
    X(hazards)                                                                                     \
    X(disjoint_views)                                                                              \
    X(fault_amid)                                                                                  \
    X(mix_that_waits)                                                                              \
    X(fault_of_its_own)

/* Cases of entries that have several. */
enum { NOT_REGISTERED, FAR_FUNC, WRONG_CORE, NO_KERNEL, NO_BLOCKS, MANY_BLOCKS, SYNC_BLOCKS };
enum { NULL_POINTER, NULL_DATA, BAD_DTYPE, NEGATIVE_SHAPE, BEFORE_MEMORY, BEYOND_MEMORY, BAD_ROLE };
enum { MANY_TENSORS, MANY_SCALARS, MANY_WORDS };
enum { INFO_BEYOND, INFO_TWICE, INFO_ROLE, INFO_COUNT, INFO_NULL_WORD, INFO_TASK };
enum { MARK_BEYOND, MARK_TOO_SOON, MARK_FAR, MARK_WORD, MARK_LAST_WORD, MARK_NOWHERE };
enum { RETURN_7, RETURN_MINUS_3, FAIL_WITH_TEXT, FIRST_ERROR_COUNTS };
enum { INDEX_AT_SIZE, INDEX_NEGATIVE, INDEX_ON_CHIP, NULL_READ, NULL_DEVICE_TENSOR };
enum { SELF_EDGE, EDGE_FROM_NOWHERE, EDGE_TO_NOWHERE, EDGE_OF_NO_TASK };
enum { WHOLE_CYCLE, CYCLE_BETWEEN };
enum { TWICE, LATE_EDGE, NEVER, THREE_NEVER, NEVER_FIRST, PUBLISH_NOWHERE, NEW_OUTPUT };
enum { END_WITHOUT_BEGIN, LEFT_OPEN, TOO_DEEP, AFTER_ITS_END, AFTER_NESTED_ENDS };
enum { HUGE_MALLOC, HUGE_OUTPUT };
enum { ORCHESTRATION_STORE, ORCHESTRATION_LOOP, ORCHESTRATION_THREAD_EXIT };

/* Calls that some runtime does not have. */
enum {
    CALL_DEVICE_MALLOC,
    CALL_COPY_TO_DEVICE,
    CALL_RETURN_TO_HOST,
    CALL_DEVICE_TENSOR,
    CALL_ADD_TASK,
    CALL_SET_TENSOR_INFO,
    CALL_ADD_TASK_WITH_INFO,
    CALL_ADD_SUCCESSOR,
    CALL_ADD_TASK_WITH_ARGS,
    CALL_ADD_SUCCESSOR_CONDITIONAL,
    CALL_PUBLISH_TASK,
    CALL_SUBMIT_TASK,
    CALL_SCOPE_BEGIN,
    CALL_SCOPE_END,
    CALL_DUMP_TASK_WORDS
};

#endif
