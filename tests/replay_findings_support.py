"""What the suites of replay's findings share: scenes made from tasks, their dumps, and what is expected of a finding.

Arguments of a suite: GLASSBOX EXAMPLES

A scene is a list of tensors, kernels of C and tasks. One table in C describes its tasks for all three runtimes; tasks run one after
the other, so a write into the tensor of another task damages no run. Addresses and indices that are expected come from the manifest.
"""
import json

import numpy as np

from command_support import ENVIRONMENT, check, check_in, glassbox
from replay_support import entries_of, manifest, payload, record, root, shared

NUMPY = {"float32": np.float32, "float16": np.float16, "int8": np.int8, "int32": np.int32, "int64": np.int64, "uint32": np.uint32}
CTYPE = {"float32": "float", "float16": "uint16_t", "bfloat16": "uint16_t", "int16": "int16_t", "int8": "int8_t", "int32": "int32_t", "int64": "int64_t", "uint32": "uint32_t",
         "int4": "uint8_t"}
MEMBERS = {"kind", "task_seq", "task_id", "kernel", "arg_index", "arg_name", "element", "elements", "extent", "owner", "followed", "blocks", "sentence"}
FINDINGS = {"stray_write", "undeclared_read", "unwritten_read", "not_deterministic", "write_race", "read_race", "endless_wait", "stale_flag"}
NOTES = {"unwritten", "counter", "flag_of_earlier_task"}
N = 64  # elements of most tensors
ANY = object()


# --- scenes ---


class View:
    """A part of a tensor, which is cut as numpy cuts arrays."""

    def __init__(self, tensor, offset, shape, strides):
        self.tensor, self.offset, self.shape, self.strides = tensor, offset, tuple(shape), tuple(strides)

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        offset, shape, strides = self.offset, [], []
        for d, stride in enumerate(self.strides):
            part = key[d] if d < len(key) else slice(None)
            if isinstance(part, int):
                offset += part * stride
                continue
            indices = range(self.shape[d])[part]
            offset += (indices[0] if indices else 0) * stride
            shape.append(len(indices))
            strides.append(indices.step * stride)
        return View(self.tensor, offset, shape, strides)

    @property
    def T(self):
        return View(self.tensor, self.offset, self.shape[::-1], self.strides[::-1])

    def broadcast(self, length):
        return View(self.tensor, self.offset, (length, *self.shape), (0, *self.strides))


ORCHESTRATION = """#include <glassbox/orchestration.h>
typedef struct argument {
    uint32_t tensor, role, is_new, ndims;
    int64_t offset, shape[4], strides[4];
} argument;
typedef struct task {
    gbx_task_kernels kernels;
    uint32_t count;
    argument args[GBX_MAX_TENSOR_ARGS];
} task;
enum { TASKS = %(count)d, TENSORS = %(tensors)d, RUN_TENSORS = %(run_tensors)d, IN_ORDER = %(in_order)d, EDGES = %(edge_count)d };
static const uint32_t edges[EDGES + 1][2] = {%(edges)s}; /* of host_build_graph */
static const task tasks[TASKS] = {%(tasks)s};
static const uint32_t is_result[TENSORS] = {%(results)s};
/* dtype, dimensions, bytes and shape of temporaries */
static const struct { uint32_t dtype, ndims; uint64_t bytes; int64_t shape[4]; } temporaries[] = {%(temporaries)s};

static gbx_tensor view(const gbx_tensor *base, const argument *a) {
    gbx_tensor made = *base;
    made.start_offset += a->offset;
    made.ndims = a->ndims;
    memset(made.shape, 0, sizeof made.shape);
    memset(made.strides, 0, sizeof made.strides);
    memcpy(made.shape, a->shape, a->ndims * sizeof(int64_t));
    memcpy(made.strides, a->strides, a->ndims * sizeof(int64_t));
    return made;
}

static gbx_tensor temporary(uint32_t i) {
    return gbx_new_tensor((gbx_dtype)temporaries[i].dtype, temporaries[i].ndims, temporaries[i].shape);
}

/* In order: waits for each task before it submits the next. */
int submit(gbx_orchestration *o, const gbx_run_args *run) {
    static gbx_tensor all[TENSORS];
    memcpy(all, run->tensors, RUN_TENSORS * sizeof *all);
    for (uint32_t i = RUN_TENSORS; i < TENSORS; ++i)
        all[i] = temporary(i - RUN_TENSORS);
    for (uint32_t t = 0; t < TASKS; ++t) {
        gbx_tensor views[GBX_MAX_TENSOR_ARGS];
        gbx_args args = gbx_args_begin();
        for (uint32_t i = 0; i < tasks[t].count; ++i) {
            const argument *a = &tasks[t].args[i];
            if (a->is_new) {
                gbx_args_add_new_output(&args, &all[a->tensor]);
                continue;
            }
            views[i] = view(&all[a->tensor], a);
            gbx_args_add_tensor(&args, &views[i], (gbx_role)a->role);
        }
        gbx_submit_task(o, tasks[t].kernels, &args);
        for (uint32_t i = 0; IN_ORDER && i < tasks[t].count; ++i) {
            const argument *a = &tasks[t].args[i];
            gbx_tensor written = a->is_new ? all[a->tensor] : views[i];
            if (a->role != GBX_ROLE_INPUT && gbx_tensor_numel(&written) > 0)
                gbx_get_tensor_data(o, &written, (int64_t[GBX_MAX_DIMS]){0});
        }
    }
    return 0;
}

/* Memory on the chip for a tensor of the host, or for a temporary. */
static gbx_tensor on_chip(gbx_orchestration *o, const gbx_tensor *tensor, uint64_t bytes) {
    gbx_tensor made = *tensor;
    made.buffer_bytes = bytes;
    made.data = gbx_device_malloc(o, bytes ? bytes : 1);
    return made;
}

int add(gbx_orchestration *o, const gbx_run_args *run) {
    static gbx_tensor all[TENSORS];
    gbx_task before = GBX_NO_TASK;
    memcpy(all, run->tensors, RUN_TENSORS * sizeof *all);
    for (uint32_t i = RUN_TENSORS; i < TENSORS; ++i) {
        gbx_tensor described = temporary(i - RUN_TENSORS);
        all[i] = on_chip(o, &described, temporaries[i - RUN_TENSORS].bytes);
    }
    for (uint32_t t = 0; t < TASKS; ++t) {
        gbx_tensor views[GBX_MAX_TENSOR_ARGS];
        gbx_args args = gbx_args_begin();
        for (uint32_t i = 0; i < tasks[t].count; ++i) {
            views[i] = view(&all[tasks[t].args[i].tensor], &tasks[t].args[i]);
            gbx_args_add_tensor(&args, &views[i], (gbx_role)tasks[t].args[i].role);
        }
        gbx_task made = gbx_add_task_with_args(o, tasks[t].kernels, &args);
        if (IN_ORDER && t)
            gbx_add_successor(o, before, made);
        gbx_publish_task(o, made);
        before = made;
    }
    return 0;
}

int build(gbx_orchestration *o, const gbx_run_args *run) {
    static gbx_tensor all[TENSORS];
    static gbx_task all_tasks[TASKS];
    gbx_task before = GBX_NO_TASK;
    for (uint32_t i = 0; i < TENSORS; ++i) {
        gbx_tensor described = i < RUN_TENSORS ? run->tensors[i] : temporary(i - RUN_TENSORS);
        uint64_t bytes = i < RUN_TENSORS ? described.buffer_bytes : temporaries[i - RUN_TENSORS].bytes;
        all[i] = on_chip(o, &described, bytes);
        if (i < RUN_TENSORS && bytes)
            gbx_copy_to_device(o, all[i].data, (const void *)(uintptr_t)described.data, bytes);
    }
    for (uint32_t t = 0; t < TASKS; ++t) {
        uint64_t words[GBX_MAX_TENSOR_ARGS];
        gbx_tensor_info infos[GBX_MAX_TENSOR_ARGS];
        for (uint32_t i = 0; i < tasks[t].count; ++i) {
            gbx_tensor made = view(&all[tasks[t].args[i].tensor], &tasks[t].args[i]);
            infos[i] = (gbx_tensor_info){i, tasks[t].args[i].role, made};
            words[i] = gbx_device_tensor(o, &made);
        }
        gbx_task made = gbx_add_task_with_tensor_info(o, tasks[t].kernels, words, tasks[t].count, infos, tasks[t].count);
        all_tasks[t] = made;
        if (IN_ORDER && t)
            gbx_add_successor(o, before, made);
        for (uint32_t i = 0; i < EDGES; ++i)
            if (edges[i][1] == t)
                gbx_add_successor(o, all_tasks[edges[i][0]], made);
        before = made;
    }
    for (uint32_t i = 0; i < RUN_TENSORS; ++i)
        if (is_result[i] && run->tensors[i].buffer_bytes)
            gbx_return_to_host(o, (void *)(uintptr_t)run->tensors[i].data, all[i].data, run->tensors[i].buffer_bytes);
    return 0;
}
"""
DTYPES = {"float32": 1, "float16": 2, "int8": 5, "int32": 9, "uint32": 10, "int64": 11, "int4": 16}
ROLES = {"in": 0, "out": 1, "inout": 2}
SUBTASKS = ("aic", "aiv0", "aiv1")


def kernel_source(args, body, dtype="float32", head=""):
    """A kernel whose arguments are tensors X, Y... with their first elements at x, y...; n counts the elements of the last `out`."""
    lines, last = [], "0"
    for slot, (role, *ctype, name) in enumerate(arg.split() for arg in args.split(", ")):
        kind = ctype[0] if ctype else CTYPE[dtype]
        lines.append(f"const gbx_tensor *{name.upper()} = gbx_arg_tensor(args, {slot}); "
                     f"{kind} *{name} = ({kind} *)gbx_tensor_origin({name.upper()}, sizeof *{name}); (void){name};")
        if role == "out" or (role == "inout" and last == "0"):
            last = f"(int)gbx_tensor_numel({name.upper()})"
    text = "\n    ".join(lines)
    return (f"#include <glassbox/kernel.h>\n{head}\nvoid kernel_entry(const uint64_t *args) {{\n    {text}\n"
            f"    int n = {last}, block = (int)gbx_local(args)->block_idx;\n    (void)n; (void)block;\n    {body}\n}}\n")


class Scene:
    def __init__(self, name, in_order=True, edges=()):
        self.in_order, self.edges = in_order, edges
        self.name, self.tensors, self.kernels, self.tasks, self.numbers = name, [], {}, [], {}

    def tensor(self, name, shape=(N,), dtype="float32", role="in", **fill):
        """A tensor of the run, or with role "temp" one that only tasks have; strides as in a payload."""
        shape = tuple(shape)
        strides, step = [], 1
        for d, length in reversed(list(enumerate(shape))):
            strides.insert(0, step)
            step *= length + length % 2 if dtype == "int4" and d == len(shape) - 1 else length
        if role != "temp" and role != "out" and not fill:
            fill = {"fill": "random", "low": 1, "high": 2 if dtype.startswith("float") else 7}
        self.tensors.append({"name": name, "dtype": dtype, "shape": list(shape), "role": role, **fill})
        return View(name, 0, shape, strides)

    def output(self, name, shape=(N,), dtype="float32", **fill):
        return self.tensor(name, shape, dtype, "out", **fill)

    def temporary(self, name, shape=(N,), dtype="float32"):
        return self.tensor(name, shape, dtype, "temp")

    def kernel(self, name, args, body, dtype="float32", core="aiv", head="", **fields):
        words = [arg.split() for arg in args.split(", ")]
        self.kernels[name] = {"func_id": len(self.kernels), "name": name, "core": core, "compile_flags": "-O0 -w",
                              "source": str(shared(f"{self.name}-{name}.c", kernel_source(args, body, dtype, head))),
                              "signature": [word[0] for word in words], "arg_names": [word[-1] for word in words], **fields}
        return name

    def task(self, kernel, *views, blocks=1, name=None):
        """Submits a task; a mix is a dict of subtasks and kernels. Its number is found again by its name."""
        self.numbers[name or kernel] = len(self.tasks)
        self.tasks.append(({"aiv0": kernel} if isinstance(kernel, str) else kernel, views, blocks))

    def once(self, name, args, body, *views, blocks=1, **more):
        """A kernel and a task of it."""
        self.kernel(name, args, body, **more)
        self.task(name, *views, blocks=blocks)

    def argument_text(self, role, view, number, made):
        base = self.tensors[number]
        is_new = base["role"] == "temp" and role == "out" and number not in made and list(view.shape) == base["shape"]
        made.add(number)
        return (f"{{{number}, {ROLES[role]}, {int(is_new)}, {len(view.shape)}, {view.offset}, "
                f"{{{', '.join(map(str, view.shape)) or 0}}}, {{{', '.join(map(str, view.strides)) or 0}}}}}")

    def table(self):
        self.tensors.sort(key=lambda tensor: tensor["role"] == "temp")
        numbers = {tensor["name"]: i for i, tensor in enumerate(self.tensors)}
        made, rows = set(), []
        for kernels, views, blocks in self.tasks:
            signature = self.kernels[next(iter(kernels.values()))]["signature"]
            ids = [str(self.kernels[kernels[s]]["func_id"]) if s in kernels else "GBX_NO_KERNEL" for s in SUBTASKS]
            args = [self.argument_text(role, view, numbers[view.tensor], made) for role, view in zip(signature, views)]
            rows.append(f"{{{{{{{', '.join(ids)}}}, {blocks}, 0}}, {len(views)}, {{{', '.join(args)}}}}}")
        temporaries = [t for t in self.tensors if t["role"] == "temp"]
        described = [f"{{{DTYPES[t['dtype']]}, {len(t['shape'])}, {int(np.prod(t['shape'])) * NUMPY[t['dtype']]().itemsize}, "
                     f"{{{', '.join(map(str, t['shape'])) or 0}}}}}" for t in temporaries]
        return ORCHESTRATION % {"in_order": int(self.in_order), "edge_count": len(self.edges), "edges": ", ".join(f"{{{a}, {b}}}" for a, b in self.edges) or "{0}",
                                "count": len(rows), "tensors": len(self.tensors), "run_tensors": len(self.tensors) - len(temporaries),
                                "results": ", ".join(str(int(t["role"] in ("out", "inout"))) for t in self.tensors),
                                "tasks": ",\n".join(rows), "temporaries": ",\n".join(described) or "{0}"}

    def write(self):
        folder = root / "scenes" / self.name
        folder.mkdir(parents=True, exist_ok=True)
        source = str(shared(f"{self.name}-orchestration.c", self.table()))
        (folder / "scene.json").write_text(json.dumps({
            "name": self.name, "args": [t for t in self.tensors if t["role"] != "temp"], "cases": {"default": {}},
            "kernels": list(self.kernels.values()),
            "orchestrations": {"tensormap_and_ringbuffer": {"source": source, "entry": "submit"},
                               "aicpu_build_graph": {"source": source, "entry": "add"},
                               "host_build_graph": {"source": source, "entry": "build"}}}))
        return folder

    def run(self, *options, name=None, code=0, environment=None):
        return Run(self, record(self.write(), name or self.name, "--no-dedup", "--guard=off", "--dump-tensor", *options, code=code,
                                environment=environment))


# --- dumps ---


class Run:
    """A dump of a scene."""

    def __init__(self, scene, dump):
        self.scene, self.dump, self.listed, self.numbers = scene, dump, manifest(dump), scene.numbers
        self.documents = {}
        for task, (kernels, views, _) in enumerate(scene.tasks):
            entries = self.entries(task)
            names = [kernels[s] for s in SUBTASKS if s in kernels]
            check(f"{scene.name} {names}: recorded views", [(tuple(e["shape"]), tuple(e["strides"])) for _, e in sorted(entries.items())],
                  [(view.shape, view.strides) for view in views])
            check(f"{scene.name} {names}: recorded kernels", next(iter(entries.values()))["kernel"], names)

    def entries(self, task):
        return {**entries_of(self.listed, task, "before_dispatch"), **entries_of(self.listed, task, "after_completion")}

    def values(self, name, slot, stage="after_completion"):
        entry = entries_of(self.listed, self.numbers[name], stage)[slot]
        return np.frombuffer(payload(self.dump, entry), NUMPY[entry["dtype"]]).reshape(entry["shape"])

    def address(self, name, slot, element=()):
        """Where an element lies in the run; it may lie outside of its tensor."""
        entry = self.entries(self.numbers[name])[slot]
        at = entry["start_offset"] + sum(i * stride for i, stride in zip(element, entry["strides"]))
        return int(entry["buffer_addr"], 16) + (at // 2 if entry["dtype"] == "int4" else at * NUMPY[entry["dtype"]]().itemsize)

    def result(self, name):
        return next(result for result in self.listed["results"] if result["name"] == name)

    def owner(self, name, slot, element):
        entry = self.entries(self.numbers[name])[slot]
        return {"task_seq": self.numbers[name], "kernel": "+".join(entry["kernel"]), "arg_index": slot, "arg_name": entry["arg_name"],
                "element": list(element)}

    def owners_at(self, name, address):
        """Whose element lies at an address: the task's own input, else tensors of the tasks nearest to it; [None] if nobody's does."""
        task, found = self.numbers[name], []
        for entry in self.listed["tensors"]:
            index = element_at(entry, address) if entry["kind"] == "tensor" else None
            if index is not None:
                distance = abs(entry["task_seq"] - task)
                found.append((distance, {"task_seq": entry["task_seq"], "kernel": "+".join(entry["kernel"]), "arg_index": entry["arg_index"],
                                         "arg_name": entry["arg_name"], "element": index}))
        nearest = min((distance for distance, _ in found), default=0)
        return [owner for distance, owner in found if distance == nearest] or [None]

    def result_owner(self, name, element):
        return {"task_seq": None, "kernel": None, "arg_index": self.result(name)["arg_index"], "arg_name": name, "element": list(element)}

    # --- replays ---

    def replay(self, name, *options, code, environment=ENVIRONMENT):
        return replayed(self.dump, self.numbers[name], *options, code=code, environment=environment)

    def replay_all(self, *options, code):
        """All tasks in one command, by their names."""
        document = replayed(self.dump, "all", *options, code=code)
        self.documents = {name: document["tasks"][seq] for name, seq in self.numbers.items()}
        return document

    def compare_singles(self, names=None):
        """A single replay finds what the replay of all tasks found."""
        for name in names or self.numbers:
            of_all = self.documents[name]
            code = 3 if of_all["verdict"] == "fault" else int(bool(of_all["findings"]) or of_all["verdict"] not in ("bit_exact", "equal_where_written"))
            alone = self.replay(name, code=code)
            races = {"write_race", "read_race"} & set(kinds(of_all))
            for key in ("findings", "notes"):
                # What a race leaves is chance; that there is one is not.
                both = [[f for f in document[key] if not races or f["kind"] != "not_deterministic"] for document in (alone, of_all)]
                check(f"{self.scene.name} {name}: {key} alone and with all", *both)
            if not races:
                check(f"{self.scene.name} {name}: verdict alone and with all", alone["verdict"], of_all["verdict"])

    # --- what is expected of the replay of all tasks ---

    def good(self, *names, verdict="bit_exact"):
        for name in names:
            document = self.documents[name]
            check(f"{self.scene.name} {name}: good", (document["verdict"], kinds(document), kinds(document, "notes")), (verdict, [], []))

    def found(self, name, kind, document=None, others=(), verdict=None, notes=(), **members):
        """The one finding of this kind, with these members; `others` may be there too."""
        document = document or self.documents[name]
        what = f"{self.scene.name} {name}"
        got = kinds(document)
        check(f"{what}: findings {got}", (got.count(kind), set(got) - {kind, *others}), (1, set()))
        check(f"{what}: notes", kinds(document, "notes"), list(notes))
        if verdict:
            check(f"{what}: verdict", document["verdict"], verdict)
        return self.check_members(what, next((f for f in document["findings"] if f["kind"] == kind), None), name, **members)

    def noted(self, name, kind, verdict="bit_exact", **members):
        document = self.documents[name]
        check(f"{self.scene.name} {name}: findings", kinds(document), [])
        check(f"{self.scene.name} {name}: notes", kinds(document, "notes"), [kind])
        check(f"{self.scene.name} {name}: verdict", document["verdict"], verdict)
        note = next((f for f in document["notes"] if f["kind"] == kind), None)
        return self.check_members(f"{self.scene.name} {name}", note, name, **members)

    def check_members(self, what, finding, name, arg=ANY, element=ANY, address=None, size=None, span=None, owner=ANY, blocks=()):
        """An address or size is exact; with a pair (least, most) it lies between them."""
        if finding is None:
            return None
        task = self.numbers[name]
        entries = self.entries(task)
        check(f"{what}: task", (finding["task_seq"], finding["task_id"], finding["kernel"]),
              (task, entries[0]["task_id"], "+".join(entries[0]["kernel"])))
        if arg is not ANY:
            check(f"{what}: argument", (finding["arg_index"], finding["arg_name"]), (arg, entries[arg]["arg_name"]))
        if element is not ANY:
            check(f"{what}: element", finding["element"], element if element is None else list(element))
        extent = finding["extent"] or {}
        for key, got, want in (("address", extent.get("address"), address), ("bytes", extent.get("bytes"), size), ("span", extent.get("span"), span)):
            got = int(got, 16) if isinstance(got, str) else got
            if isinstance(want, tuple):
                check(f"{what}: {key} {got} in {want}", got is not None and want[0] <= got <= want[1], True)
            elif want is not None:
                check(f"{what}: {key}", got, want)
        if finding["kind"] == "stray_write" and extent:
            at = int(extent["address"], 16)
            check(f"{what}: owner {finding['owner']} at {extent['address']} in the manifest", finding["owner"] in self.owners_at(name, at), True)
        if owner is not ANY:
            check(f"{what}: owner", finding["owner"], owner)
        if blocks is not ANY:
            check(f"{what}: blocks", sorted((b["block_idx"], b["subtask"]) for b in finding["blocks"]), sorted(blocks))
        return finding


def element_at(entry, address):
    """The index of a tensor's element that lies at an address, or None."""
    width = 0.5 if entry["dtype"] == "int4" else NUMPY[entry["dtype"]]().itemsize
    at = np.array(float(entry["start_offset"]))
    for length, stride in zip(entry["shape"], entry["strides"]):
        at = np.add.outer(at, np.arange(length) * float(stride))
    first = int(entry["buffer_addr"], 16) + np.floor(at * width)
    inside = np.argwhere((first <= address) & (address < first + max(width, 1)))
    return [int(i) for i in inside[0]] if len(inside) else None


def kinds(document, key="findings"):
    return [finding["kind"] for finding in document.get(key, [])]


def check_form(what, document):
    """Every finding and note has all members; those of several tasks are those of each, in their order."""
    for key, allowed in (("findings", FINDINGS), ("notes", NOTES)):
        listed = document.get(key)
        if not check(f"{what}: has {key}", isinstance(listed, list), True):
            document[key] = []
            continue
        for one in listed:
            check(f"{what}: members of {key}", set(one), MEMBERS)
            check(f"{what}: kind {one.get('kind')} of {key}", one.get("kind") in allowed, True)
            check(f"{what}: sentence {one.get('sentence')!r}", (one["sentence"].count("\n"), f"task {one['task_seq']}" in one["sentence"]), (0, True))
            if one["extent"] is not None:
                check(f"{what}: members of an extent", set(one["extent"]), {"address", "bytes", "span"})
        if "tasks" in document:
            check(f"{what}: {key} of all tasks", listed, [one for task in document["tasks"] for one in task.get(key, [])])


def replayed(dump, task, *options, code, environment=ENVIRONMENT):
    done = glassbox("replay", dump, "--task", task, "--json", *options, environment=environment)
    what = f"replay {dump.name} {task} {options}"
    check(f"{what}: exit code and stderr", (done.returncode, done.stderr), (code, ""))
    document = json.loads(done.stdout) if done.stdout else {"tasks": [], "verdict": None}
    check_form(what, document)
    for one in document.get("tasks", []):
        check_form(what, one)
    return document


def check_text(run, name, finding, code=1):
    """The sentence of a finding is part of the text."""
    done = glassbox("replay", run.dump, "--task", run.numbers[name])
    check(f"{run.scene.name} {name}: exit code of the text", done.returncode, code)
    if finding:
        check_in(f"{run.scene.name} {name}", finding["sentence"], done.stdout)


def write_kernel(name, args, body, dtype="float32", head=""):
    """A file for --kernel."""
    path = root / f"{name}.c"
    path.write_text(kernel_source(args, body, dtype, head))
    return path
