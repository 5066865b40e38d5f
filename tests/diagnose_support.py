"""Recording runs, asking diagnose about them, and the form of its document. Who reads what a task left is computed here from the views of the graph,
element by element."""
import json
import pathlib
import re
import shutil

import numpy as np

from command_support import ENVIRONMENT, check, check_in, glassbox
from replay_findings_support import Scene
from replay_support import root

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
COPY = "for (int i = 0; i < n; ++i) y[i] = x[i];"
TWICE = "for (int i = 0; i < n; ++i) y[i] = 2 * x[i];"
ARGS = "in x, out y"
QUESTIONS = ["dump", "run", "audit", "replay", "races", "references", "sanitizers", "nan", "golden", "graph"]
OF_CODE = {"replay", "races", "references", "sanitizers"}
WHOLE, TEXT, LIST = int, str, list
FINDING = {"kind": TEXT, "sentence": TEXT, "task_seq": (WHOLE, None), "task_id": (TEXT, None), "kernel": (TEXT, None),
           "arg_index": (WHOLE, None), "arg_name": (TEXT, None), "element": (LIST, None), "bytes": (WHOLE, None), "blocks": LIST,
           "source": (dict, None), "other_task_seq": (WHOLE, None), "tasks": LIST, "evidence": LIST, "victims": LIST,
           "victims_known": bool, "follows": (WHOLE, None), "command": TEXT}


# --- running and asking ---


def recorded(scene, name, *options, code=0):
    """A dump of a scene, which keeps nothing of an earlier one."""
    dump = root / name
    shutil.rmtree(dump, ignore_errors=True)
    folder = scene.write() if isinstance(scene, Scene) else scene
    if not any(str(option).startswith("--dump-tensor") for option in options):
        options += ("--dump-tensor",)
    done = glassbox("run", folder, "-o", dump, "--guard=off", *options)
    check(f"run {name} {options}: exit code ({done.stderr})", done.returncode, code)
    return dump


def asked(dump, *options, code, stderr="", environment=ENVIRONMENT):
    """The document of a diagnosis, after looking at its form and at the one that is kept."""
    done = glassbox("diagnose", dump, "--json", *options, environment=environment)
    what = f"diagnose {pathlib.Path(dump).name} {options}"
    check(f"{what}: exit code and stderr", (done.returncode, done.stderr), (code, stderr))
    document = json.loads(done.stdout or '{"findings": [], "asked": [], "tasks": 0, "left_out": 0, "dump": {}}')
    check_form(what, document)
    if "--no-save" not in options and "--task" not in options:
        check(f"{what}: what is kept", (pathlib.Path(dump) / "diagnosis.json").read_text(), done.stdout)
    return document


def text_of(dump, *options, code):
    done = glassbox("diagnose", dump, "--no-save", *options)
    check(f"diagnose {pathlib.Path(dump).name} {options}: exit code and stderr of the text", (done.returncode, done.stderr), (code, ""))
    return done.stdout


def told(dump, *options, code):
    """The text of a diagnosis, and the document that it keeps."""
    done = glassbox("diagnose", dump, *options)
    what = f"diagnose {dump.name} {options}"
    check(f"{what}: exit code and stderr of the text", (done.returncode, done.stderr), (code, ""))
    document = json.loads((dump / "diagnosis.json").read_text())
    check_form(what, document)
    return done.stdout, document


def refused(dump, *options):
    done = glassbox("diagnose", dump, *options)
    check(f"diagnose {pathlib.Path(dump).name} {options}: refused", (done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
    check(f"diagnose {pathlib.Path(dump).name} {options}: name of the command", done.stderr.startswith("glassbox diagnose: "), True)
    return done.stderr


def is_of(value, wanted):
    kinds = wanted if isinstance(wanted, tuple) else (wanted,)
    return (value is None and None in kinds) or type(value) in [kind for kind in kinds if kind is not None]


def check_form(what, document):
    check(f"{what}: members", list(document), ["schema_version", "generator", "dump", "tasks", "left_out", "findings", "asked"])
    check(f"{what}: schema", document["schema_version"], 1)
    check(f"{what}: members of dump", list(document["dump"]), ["run_id", "records", "hash"])
    check(f"{what}: hash {document['dump']['hash']}", bool(re.fullmatch("[0-9a-f]{32}", document["dump"]["hash"])), True)
    check(f"{what}: questions", [one["question"] for one in document["asked"]], QUESTIONS)
    for one in document["asked"]:
        check(f"{what}: members of asked", list(one), ["question", "tasks", "findings", "not_asked", "why", "harmless"])
        check(f"{what}: types of {one}", [is_of(one[key], kind) for key, kind in
                                          (("tasks", WHOLE), ("findings", WHOLE), ("not_asked", WHOLE), ("why", (TEXT, None)),
                                           ("harmless", (TEXT, None)))], [True] * 5)
        check(f"{what}: {one['question']}: a reason for what was not asked", one["not_asked"] == 0 or bool(one["why"]), True)
        check(f"{what}: {one['question']}: no more tasks than there are", one["tasks"] + one["not_asked"] <= document["tasks"], True)
    for number, finding in enumerate(document["findings"]):
        check_finding(f"{what}: finding {number}", finding, number)
    accused = [task for finding in document["findings"] for task in finding["tasks"]]
    check(f"{what}: a task of two findings", sorted(set(accused)), sorted(accused))


def check_finding(what, finding, number):
    check(f"{what}: members", list(finding), list(FINDING))
    check(f"{what}: types", [key for key, kind in FINDING.items() if not is_of(finding.get(key), kind)], [])
    check(f"{what}: sentence", (finding["sentence"].count("\n"), finding["sentence"].strip()), (0, finding["sentence"]))
    check(f"{what}: the first of its tasks", finding["tasks"][:1], [] if finding["task_seq"] is None else [finding["task_seq"]])
    check(f"{what}: no task hurts itself", set(finding["tasks"]) & set(finding["victims"]), set())
    check(f"{what}: lists are of tasks, once each", [sorted(set(finding[key])) == sorted(finding[key]) for key in ("tasks", "victims")], [True] * 2)
    check(f"{what}: follows an earlier one", finding["follows"] is None or finding["follows"] < number, True)
    check(f"{what}: command", finding["command"].startswith("glassbox "), True)
    if finding["task_seq"] is not None:
        check_in(what, f"task {finding['task_seq']}", finding["sentence"])
        check_in(what, finding["kernel"], finding["sentence"])
    if finding["source"]:
        check(f"{what}: members of source", list(finding["source"]), ["file", "line"])


def question(document, name):
    return next(one for one in document["asked"] if one["question"] == name)


def of_code(document, key):
    """Of the questions for which kernels are called."""
    return {one["question"]: one[key] for one in document["asked"] if one["question"] in OF_CODE}


def named(document):
    """What each finding accuses."""
    return [(f["kind"], f["kernel"], f["arg_name"], f["tasks"]) for f in document["findings"]]


# --- who reads what: element by element ---


def elements(view):
    """The numbers of a view's elements in its tensor."""
    at = np.array(view.offset)
    for length, stride in zip(view.shape, view.strides):
        at = np.add.outer(at, np.arange(length) * stride)
    return {(view.tensor, int(i)) for i in at.reshape(-1)}


def victims_of(scene, guilty):
    """Tasks that read what the guilty ones left, or what somebody made of it; tasks run in the order of their numbers."""
    bad, found = set(), []
    for task, (kernels, views, _) in enumerate(scene.tasks):
        roles = scene.kernels[next(iter(kernels.values()))]["signature"]
        read = set().union(*(elements(v) for v, role in zip(views, roles) if role != "out"))
        written = set().union(*(elements(v) for v, role in zip(views, roles) if role != "in"))
        is_hurt = task not in guilty and bool(read & bad)
        found += [task] * is_hurt
        bad = bad | written if is_hurt or task in guilty else bad - written
    return found


# --- goldens ---

GOLDEN = """def golden(args):
    twice = 2 * args["a"]
    return {"b": args["a"], "c": twice}
"""


def with_golden(scene, cases=("default",), golden=GOLDEN):
    folder = scene.write()
    (folder / "golden.py").write_text(golden)
    document = json.loads((folder / "scene.json").read_text())
    (folder / "scene.json").write_text(json.dumps({**document, "golden": {"source": "golden.py"}, "cases": {case: {} for case in cases}}))
    return folder
