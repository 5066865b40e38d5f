"""Tasks that break the signature of their kernel, and views outside of their tensor: on every runtime and platform
glassbox run refuses each with task, kernel, argument, what the signature says and what came. With --loose-signatures
they run, and are counted."""
import json
import subprocess
import sys

from command_support import GLASSBOX, PLATFORMS, RUNTIMES, check, check_in
from run_support import make, run, run_json, run_tests

HOST, AICPU, TENSORMAP = RUNTIMES
NAMES = ["x", "acc", "y", "scale", "flag"]
# The words of a signature in another order than args[]: scalars come last there.
ORDER = ["x", "scale", "acc", "y", "flag"]


def kernel(func_id, name, core="aiv", **words):
    return {"func_id": func_id, "name": name, "source": f"kernels/{core}.c", "core": core,
            "signature": [words[one] for one in ORDER if one in words], "arg_names": [one for one in ORDER if one in words]}


KERNELS = [
    kernel(0, "strict", x="in:float32[2]", acc="inout", y="out", scale="scalar:float32", flag="scalar"),
    kernel(1, "free"),
    kernel(2, "tensors_only", x="in", acc="inout:[2]", y="out:float32"),
    kernel(3, "reader", core="aic", x="in", acc="in", y="out", scale="scalar:float32", flag="scalar"),
    kernel(4, "writer", core="aic", x="in", acc="inout", y="out", scale="scalar:float32", flag="scalar"),
]

# y = x * scale, acc += 1; an AIC of a mix does nothing.
AIV = """#include <glassbox/kernel.h>
void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0);
    float *acc = gbx_tensor_f32(gbx_arg_tensor(args, 1)), *y = gbx_tensor_f32(gbx_arg_tensor(args, 2));
    float scale = gbx_arg_f32(args, 3);
    if (gbx_arg_u32(args, 4) != 7) scale = 0;
    for (int64_t i = 0; i < gbx_tensor_numel(x); ++i) { y[i] = gbx_tensor_f32(x)[i] * scale; acc[i] += 1; }
}
"""
AIC = "#include <glassbox/kernel.h>\nvoid kernel_entry(const uint64_t *args) { (void)args; }\n"

GRAPH = """#include <glassbox/orchestration.h>
enum { STRICT, FREE, TENSORS_ONLY, READER, WRITER };
typedef struct given { int role; gbx_tensor tensor; gbx_dtype dtype; uint64_t bits; } given; /* role -1: a scalar */
typedef struct list {
    gbx_orchestration *o;
    gbx_task_kernels kernels;
    given all[12];
    int count;
    int is_undescribed;
    uint64_t described_too; /* words that are described as tensors though they are scalars */
} list;

static inline void insert(list *l, int at, given one) {
    for (int i = l->count++; i > at; --i) l->all[i] = l->all[i - 1];
    l->all[at] = one;
}
static inline void drop(list *l, int at) {
    --l->count;
    for (int i = at; i < l->count; ++i) l->all[i] = l->all[i + 1];
}
static inline given scalar_of(gbx_dtype dtype, uint64_t bits) {
    given one; memset(&one, 0, sizeof one); one.role = -1; one.dtype = dtype; one.bits = bits; return one;
}
static inline void begin(list *l, gbx_orchestration *o, const gbx_tensor *tensors, const uint64_t *scalars) {
    memset(l, 0, sizeof *l);
    l->o = o;
    l->kernels = gbx_aiv(STRICT);
    for (int i = 0; i < 3; ++i) {
        given one; memset(&one, 0, sizeof one); one.tensor = tensors[i];
        one.role = i == 0 ? GBX_ROLE_INPUT : i == 1 ? GBX_ROLE_INOUT : GBX_ROLE_OUTPUT;
        insert(l, i, one);
    }
    insert(l, 3, scalar_of(GBX_FLOAT32, scalars[0]));
    insert(l, 4, scalar_of(GBX_UINT32, 7));
}
static inline void change(list *l, int variant) {
    gbx_tensor *x = &l->all[0].tensor, *y = &l->all[2].tensor;
    (void)x, (void)y;
    switch (variant) {
%s
    }
}
static inline gbx_args args_of(const list *l) {
    gbx_args args = gbx_args_begin();
    for (int i = 0; i < l->count; ++i) {
        if (l->all[i].role < 0) gbx_args_add_scalar(&args, l->all[i].dtype, l->all[i].bits);
        else gbx_args_add_tensor(&args, &l->all[i].tensor, (gbx_role)l->all[i].role);
    }
    return args;
}
"""
ON_TENSORMAP = """#include "graph.h"
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    list l;
    for (int i = 0; i < 2; ++i) {
        begin(&l, o, run->tensors, run->scalars);
        if (i == 1) change(&l, (int)run->scalars[1]);
        gbx_args args = args_of(&l);
        gbx_submit_task(o, l.kernels, &args);
    }
    return 0;
}
"""
ON_AICPU = """#include "graph.h"
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    list l;
    gbx_task before = GBX_NO_TASK;
    for (int i = 0; i < 2; ++i) {
        begin(&l, o, run->tensors, run->scalars);
        if (i == 1) change(&l, (int)run->scalars[1]);
        gbx_args args = args_of(&l);
        gbx_task task = gbx_add_task_with_args(o, l.kernels, &args);
        if (i == 1) gbx_add_successor(o, before, task);
        gbx_publish_task(o, before = task);
    }
    return 0;
}
"""
ON_HOST = """#include "graph.h"
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_tensor tensors[3];
    list l;
    gbx_task before = GBX_NO_TASK;
    for (int i = 0; i < 3; ++i) {
        tensors[i] = run->tensors[i];
        tensors[i].data = gbx_device_malloc(o, tensors[i].buffer_bytes);
        gbx_copy_to_device(o, tensors[i].data, (const void *)(uintptr_t)run->tensors[i].data, tensors[i].buffer_bytes);
        gbx_return_to_host(o, (void *)(uintptr_t)run->tensors[i].data, tensors[i].data, i ? tensors[i].buffer_bytes : 0);
    }
    for (int i = 0; i < 2; ++i) {
        uint64_t words[12];
        gbx_tensor_info infos[12];
        uint32_t info_count = 0;
        begin(&l, o, tensors, run->scalars);
        if (i == 1) change(&l, (int)run->scalars[1]);
        for (int k = 0; k < l.count; ++k) {
            int is_tensor = l.all[k].role >= 0 || l.described_too >> k & 1;
            gbx_tensor_info info = {(uint32_t)k, l.all[k].role < 0 ? 0 : (uint32_t)l.all[k].role,
                                    l.all[k].role < 0 ? tensors[0] : l.all[k].tensor};
            words[k] = is_tensor ? gbx_device_tensor(o, &info.tensor) : l.all[k].bits;
            if (is_tensor) infos[info_count++] = info;
        }
        gbx_task task = l.is_undescribed ? gbx_add_task(o, l.kernels, words, (uint32_t)l.count)
            : gbx_add_task_with_tensor_info(o, l.kernels, words, (uint32_t)l.count, infos, info_count);
        if (i == 1) gbx_add_successor(o, before, task);
        before = task;
    }
    return 0;
}
"""
GOLDEN = "def golden(args):\n    return {'acc': args['acc'] + 2, 'y': args['x'] * args['scale']}\n"

AT = "task 1 (kernel strict): "
MISSING = "missing: the signature lists"
MANY = "too many: the signature lists"
X_SAYS = "argument 0 (x): the signature says in:float32[2], but the t"


def by_runtime(host, chip):
    return {HOST: host, AICPU: chip, TENSORMAP: chip}


# Name, what the second task does differently, and the sentence; None: it is right; a runtime that is not there is skipped.
VARIANTS = [
    ("right", "", None),
    ("out_for_inout", "l->all[1].role = GBX_ROLE_OUTPUT;", None),
    ("inout_for_out", "l->all[2].role = GBX_ROLE_INOUT;", None),
    ("undeclared_scalar", "l->all[3].dtype = l->all[4].dtype = GBX_DTYPE_NONE;", None),
    ("free", "l->kernels = gbx_aiv(FREE); l->all[0].role = GBX_ROLE_INOUT; l->all[1].role = GBX_ROLE_OUTPUT;"
             " insert(l, 5, scalar_of(GBX_INT8, 1));", None),
    ("scalars_from_the_payload", "l->kernels = gbx_aiv(TENSORS_ONLY); insert(l, 5, scalar_of(GBX_INT8, 1));", None),
    ("right_mix", "l->kernels = gbx_mix(WRITER, STRICT, STRICT); l->kernels.func_ids[2] = GBX_NO_KERNEL;", None),
    ("no_tensor", "drop(l, 2);", by_runtime(f"{AT}argument 4 (flag) is {MISSING} 5 arguments, the task has 4",
                                            f"{AT}argument 2 (y) is {MISSING} 3 tensors, the task has 2")),
    ("more_tensors", "insert(l, 3, l->all[2]);", by_runtime(f"{AT}argument 5 is {MANY} 5 arguments, the task has 6",
                                                          f"{AT}argument 3 is {MANY} 3 tensors, the task has 4")),
    ("no_scalar", "drop(l, 4);", by_runtime(f"{AT}argument 4 (flag) is {MISSING} 5 arguments, the task has 4",
                                            f"{AT}argument 4 (flag) is {MISSING} 2 scalars, the task has 1")),
    ("more_scalars", "insert(l, 5, scalar_of(GBX_INT8, 1));",
     by_runtime(f"{AT}argument 5 is {MANY} 5 arguments, the task has 6", f"{AT}argument 5 is {MANY} 2 scalars, the task has 3")),
    ("too_few_for_tensors_only", "l->kernels = gbx_aiv(TENSORS_ONLY); drop(l, 4); drop(l, 3); drop(l, 2);",
     by_runtime(f"task 1 (kernel tensors_only): argument 2 (y) is {MISSING} 3 arguments, the task has 2",
                f"task 1 (kernel tensors_only): argument 2 (y) is {MISSING} 3 tensors, the task has 2")),
    ("in_for_inout", "l->all[1].role = GBX_ROLE_INPUT;", f"{AT}argument 1 (acc): the signature says inout, but the task gives an input"),
    ("in_for_out", "l->all[2].role = GBX_ROLE_INPUT;", f"{AT}argument 2 (y): the signature says out, but the task gives an input"),
    ("out_for_in", "l->all[0].role = GBX_ROLE_OUTPUT;", f"{AT}{X_SAYS}ask gives an output"),
    ("inout_for_in", "l->all[0].role = GBX_ROLE_INOUT;", f"{AT}{X_SAYS}ask gives an in-out"),
    ("int32_for_float32", "l->all[3].dtype = GBX_INT32;",
     {runtime: f"{AT}argument 3 (scale): the signature says scalar:float32, but the task gives int32" for runtime in (AICPU, TENSORMAP)}),
    ("dtype", "x->dtype = GBX_INT32;", f"{AT}{X_SAYS}ask gives int32"),
    ("rank", "*x = gbx_view_select(x, 0, 0);", f"{AT}{X_SAYS}ensor has 1 dimension"),
    ("rank_of_other", "l->kernels = gbx_aiv(TENSORS_ONLY); l->all[1].tensor = gbx_view_select(&l->all[1].tensor, 1, 2);",
     "task 1 (kernel tensors_only): argument 1 (acc): the signature says inout:[2], but the tensor has 1 dimension"),
    ("mix", "l->kernels = gbx_mix(READER, STRICT, GBX_NO_KERNEL);",
     "task 1 (kernel reader): argument 1 (acc): the signature says in, but the task gives an in-out"),
    ("tensor_for_scalar", "l->described_too = 1 << 3;",
     {HOST: f"{AT}argument 3 (scale): the signature says scalar:float32, but the task describes a tensor"}),
    ("undescribed", "l->is_undescribed = 1;", {HOST: None}),
    ("undescribed_and_short", "l->is_undescribed = 1; drop(l, 4);", {HOST: f"{AT}argument 4 (flag) is {MISSING} 5 arguments, the task has 4"}),
    # Views.
    ("slice_past_the_end", "*x = gbx_view_slice(x, 0, 3, 2);",
     f"{AT}argument 0 (x): gbx_view_slice: start 3 with length 2 is outside dimension 0 of a tensor of shape [4, 6]"),
    ("slice_before_the_start", "*y = gbx_view_slice(y, 1, -1, 2);",
     f"{AT}argument 2 (y): gbx_view_slice: start -1 with length 2 is outside dimension 1 of a tensor of shape [4, 6]"),
    ("slice_of_less_than_none", "*y = gbx_view_slice(y, 1, 2, -1);",
     f"{AT}argument 2 (y): gbx_view_slice: start 2 with length -1 is outside dimension 1 of a tensor of shape [4, 6]"),
    ("slice_that_overflows", "*y = gbx_view_slice(y, 1, INT64_MAX, INT64_MAX);",
     f"{AT}argument 2 (y): gbx_view_slice: start 9223372036854775807 with length 9223372036854775807 is outside dimension 1 of a tensor "
     "of shape [4, 6]"),
    ("slice_of_no_dimension", "*x = gbx_view_slice(x, 2, 0, 1);",
     f"{AT}argument 0 (x): gbx_view_slice: a tensor of shape [4, 6] has no dimension 2"),
    ("slice_of_dimension_9", "*x = gbx_view_slice(x, 9, 0, 1);",
     f"{AT}argument 0 (x): gbx_view_slice: a tensor of shape [4, 6] has no dimension 9"),
    ("select_past_the_end", "*x = gbx_view_select(x, 1, 6);",
     f"{AT}argument 0 (x): gbx_view_select: index 6 is outside dimension 1 of a tensor of shape [4, 6]"),
    ("transpose_of_no_dimension", "*x = gbx_view_transpose(x, 1, 2);",
     f"{AT}argument 0 (x): gbx_view_transpose: a tensor of shape [4, 6] has no dimension 2"),
    ("view_of_a_wrong_view", "*x = gbx_view_slice(x, 0, 2, 3); *x = gbx_view_transpose(x, 0, 1); *x = gbx_view_slice(x, 7, 0, 1);",
     f"{AT}argument 0 (x): gbx_view_slice: start 2 with length 3 is outside dimension 0 of a tensor of shape [4, 6]"),
    ("beyond_the_buffer", "y->shape[0] = 5;", f"{AT}argument 2 (y): tensor: elements end at byte 120, expected at most 96 (buffer_bytes); "
                                              "its shape is [5, 6]"),
    ("beyond_memory", "y->shape[0] = INT64_C(1) << 40; y->buffer_bytes = 0;", f"{AT}argument 2 (y): its elements from 0x"),
    ("read_of_a_wrong_view", "{ int64_t at[2] = {0}; gbx_tensor row = gbx_view_slice(x, 0, 4, 1); gbx_get_tensor_data(l->o, &row, at); }",
     "before task 1: the tensor of a call: gbx_view_slice: start 4 with length 1 is outside dimension 0 of a tensor of shape [4, 6]"),
    ("slices_at_the_edge", "*x = gbx_view_slice(x, 0, 0, 4); *x = gbx_view_slice(x, 1, 0, 6); gbx_view_slice(x, 0, 4, 0);", None),
]
SCENE = {
    "name": "signatures",
    "kernels": KERNELS,
    "orchestrations": {HOST: {"source": "host.c"}, AICPU: {"source": "aicpu.c"}, TENSORMAP: {"source": "tensormap.c"}},
    "args": [{"name": "x", "dtype": "float32", "shape": [4, 6], "role": "in"},
             {"name": "acc", "dtype": "float32", "shape": [4, 6], "role": "inout"},
             {"name": "y", "dtype": "float32", "shape": [4, 6], "role": "out"},
             {"name": "scale", "dtype": "float32", "role": "scalar", "value": 2.5},
             {"name": "variant", "dtype": "int32", "role": "scalar", "value": 0}],
    "cases": {name: {"args": {"variant": {"value": number}}} for number, (name, _, _) in enumerate(VARIANTS)},
    "golden": {"source": "golden.py"},
}
CHANGES = "\n".join(f"    case {number}: {code} break;" for number, (_, code, _) in enumerate(VARIANTS))
FILES = {"graph.h": GRAPH % CHANGES, "host.c": ON_HOST, "aicpu.c": ON_AICPU, "tensormap.c": ON_TENSORMAP, "kernels/aiv.c": AIV,
         "kernels/aic.c": AIC, "golden.py": GOLDEN}
REFUSED = 2


def made():
    return make("signatures", SCENE, FILES)


def expected(runtime):
    """The cases of a runtime: name and sentence."""
    for name, _, sentence in VARIANTS:
        if not isinstance(sentence, dict):
            yield name, sentence
        elif runtime in sentence:
            yield name, sentence[runtime]


def test_refusals():
    scene = made()
    for platform in PLATFORMS:
        for runtime in RUNTIMES:
            wanted = dict(expected(runtime))
            names = [word for name in wanted for word in ("--case", name)]
            cases = run_json(scene, "-p", platform, "--runtime", runtime, *names, code=REFUSED)["cases"]
            check(f"{platform} {runtime}: cases", [case["name"] for case in cases], list(wanted))
            for case in cases:
                what, sentence = f"{platform} {runtime} {case['name']}", wanted[case["name"]]
                if sentence is None:
                    check(f"{what}: right", (case["status"], case["error"]), ("ok", None))
                    check(f"{what}: not a warning", case["signature_warnings"], 0)
                else:
                    check(f"{what}: refused", case["status"], "failed")
                    check_in(what, sentence, case["error"] or "")
            texts = {case["name"]: case["error"] or "" for case in cases}
            check_in(f"{platform} {runtime}: shape", "its shape is [1099511627776, 6]", texts["beyond_memory"])
            check_in(f"{platform} {runtime}: what to do", "(--loose-signatures only warns)", texts["in_for_out"])


def test_one_refusal_in_text():
    _, errors = run(made(), "--case", "in_for_inout", code=REFUSED)
    check("one sentence", errors, "glassbox run: case in_for_inout: task 1 (kernel strict): argument 1 (acc): the signature says inout, "
          "but the task gives an input; correct the task or the signature (--loose-signatures only warns)\n")


# What runs all the same, and gives a defined result: name, warnings, parts of the sentences.
LOOSE = [("right", []), ("in_for_out", ["argument 2 (y): the signature says out, but the task gives an input"]),
         ("in_for_inout", ["argument 1 (acc): the signature says inout, but the task gives an input"]),
         ("more_scalars", ["argument 5 is too many"]), ("inout_for_in", ["argument 0 (x)"]),
         ("rank", ["the tensor has 1 dimension"])]


def test_loose():
    scene = made()
    for platform in PLATFORMS:
        for runtime in RUNTIMES:
            names = [word for name, _ in LOOSE for word in ("--case", name)]
            cases = run_json(scene, "-p", platform, "--runtime", runtime, "--loose-signatures", "--no-golden", *names)["cases"]
            for case, (name, parts) in zip(cases, LOOSE, strict=True):
                what = f"{platform} {runtime} {name} loose"
                check(f"{what}: runs", (case["status"], case["tasks"], case["error"]), ("not_compared", 2, None))
                check(f"{what}: counted", case["signature_warnings"], len(parts))
                check(f"{what}: sentences", len(case["signature_sentences"]), len(parts))
                for part, sentence in zip(parts, case["signature_sentences"]):
                    check_in(what, part, sentence)
                    check_in(what, AT, sentence)


def test_loose_keeps_other_errors():
    """A view that does not exist is refused however loose signatures are; what was counted before is reported."""
    scene = made()
    for runtime in RUNTIMES:
        case = run_json(scene, "--runtime", runtime, "--loose-signatures", "--case", "slice_past_the_end", code=REFUSED)["cases"][0]
        check_in(runtime, "gbx_view_slice", case["error"])


REPEATED = """#include "graph.h"
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    list l;
    for (int i = 0; i < 1000; ++i) {
        begin(&l, o, run->tensors, run->scalars);
        l.all[1].role = l.all[2].role = GBX_ROLE_INPUT;
        gbx_args args = args_of(&l);
        gbx_submit_task(o, l.kernels, &args);
    }
    return 0;
}
"""


def test_many_warnings_are_few_sentences():
    scene = make("repeated", SCENE, {**FILES, "tensormap.c": REPEATED})
    out, errors = run(scene, "--loose-signatures", "--no-golden")
    check("warnings", errors.splitlines(), [
        "glassbox run: case right: warning: task 0 (kernel strict): argument 1 (acc): the signature says inout, but the task gives an input",
        "glassbox run: case right: warning: task 0 (kernel strict): argument 2 (y): the signature says out, but the task gives an input",
        "glassbox run: case right: warning: 2000 arguments break a signature; above is the first of each sort"])
    check_in("the run", "1000 tasks", out)


CRASH = AIV.replace("float scale", "if (gbx_arg_u32(args, 4) == 8) *(volatile int *)8 = 0;\n    float scale")


def test_warnings_survive_a_fault():
    """What the loosened task did to the run is told together with it."""
    crash = [("right", "", None), ("crash", "l->all[1].role = GBX_ROLE_INPUT; l->all[4].bits = 8;", None)]
    changes = "\n".join(f"    case {number}: {code} break;" for number, (_, code, _) in enumerate(crash))
    cases = {"crash": {"args": {"variant": {"value": 1}}}}
    scene = make("crash", {**SCENE, "cases": cases}, {**FILES, "graph.h": GRAPH % changes, "kernels/aiv.c": CRASH})
    for runtime in RUNTIMES:
        case = run_json(scene, "--runtime", runtime, "--loose-signatures", code=3)["cases"][0]
        check_in(runtime, "SIGSEGV", case["error"])
        check(f"{runtime}: counted", case["signature_warnings"], 1)
        check_in(runtime, "argument 1 (acc)", "".join(case["signature_sentences"]))


def test_dump_keeps_the_words():
    """run.json and manifest have the words of the scene, and commands that read them take them."""
    scene = made()
    output = scene.parent / "dump"
    run(scene, "--dump-tensor", "--dump-args", "-o", str(output))
    words = KERNELS[0]["signature"]
    for file in ("run.json", "tensor_dump/tensor_dump.json"):
        kernels = json.loads((output / file).read_text())["kernels"]
        check(file, next(one["signature"] for one in kernels if one["func_id"] == 0), words)
    for command in (["verify"], ["audit"], ["view"], ["replay", "--task", "1"]):
        done = subprocess.run([GLASSBOX, command[0], str(output), *command[1:]], text=True, capture_output=True, timeout=600)
        check(f"{command[0]}: {done.stderr}", done.returncode, 0)


if __name__ == "__main__":
    sys.exit(run_tests(test_refusals, test_one_refusal_in_text, test_loose, test_loose_keeps_other_errors,
                       test_many_warnings_are_few_sentences, test_warnings_survive_a_fault, test_dump_keeps_the_words))
