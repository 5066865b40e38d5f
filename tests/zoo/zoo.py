"""Support of the zoo: plants a bug in a copy of its scene, runs it, asks `glassbox diagnose`, and judges the answer."""
import dataclasses
import json
import pathlib
import re
import shutil
import tempfile

import bugs
from command_support import glassbox

HERE = pathlib.Path(__file__).resolve().parent
SCENES = HERE / "scenes"
TIMEOUT = 3  # seconds after which a kernel counts as hung
root = pathlib.Path(tempfile.mkdtemp(prefix="glassbox-zoo-"))


@dataclasses.dataclass
class Recorded:
    """A scene that was run."""
    scene: pathlib.Path
    dump: pathlib.Path
    code: int
    case: dict  # of the command's JSON; empty if there is none
    error: str


@dataclasses.dataclass
class Diagnosis:
    code: int
    text: str  # or None
    document: dict
    error: str

    @property
    def findings(self):
        return self.document.get("findings", [])


# --- planting and running ---


def copied(scene):
    """A scene on its own, with the headers that all share. Always at the same path: what is not edited is compiled once."""
    target = root / "scenes" / scene
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(SCENES / scene, target)
    for header in SCENES.glob("*.h"):
        shutil.copy(header, target.parent)
    return target


def planted(bug):
    scene = copied(bug.scene)
    for file, old, new in bug.edits:
        text = (scene / file).read_text()
        if text.count(old) != 1:
            raise ValueError(f"{bug.name}: {file} has {text.count(old)} times, not once: {old!r}")
        (scene / file).write_text(text.replace(old, new))
    return scene


def run(scene, name, runtime, platform, case=None):
    dump = root / "dumps" / name
    shutil.rmtree(dump, ignore_errors=True)
    options = ["--dump-tensor", "--dump-args", "-o", dump, "--runtime", runtime, "-p", platform, "--timeout", TIMEOUT, "--json"]
    done = glassbox("run", scene, *options, *(["--case", case] if case else []))
    cases = json.loads(done.stdout)["cases"] if done.stdout else [{}]
    return Recorded(scene, dump, done.returncode, cases[0], done.stderr)


def diagnose(recorded, with_text=False):
    """The JSON of a diagnosis, and if wanted the text of another one: where chance plays a part they may differ in details."""
    text = glassbox("diagnose", recorded.dump).stdout if with_text else None
    asked = glassbox("diagnose", recorded.dump, "--json")
    try:
        document = json.loads(asked.stdout)
    except ValueError:
        document = {}
    return Diagnosis(asked.returncode, text, document, asked.stderr)


# --- judging ---


def numbers_of_tasks(sentence):
    """The tasks that a sentence names: `task 7`, `tasks 3 and 4`."""
    lists = re.findall(r"\btasks? (\d+(?:(?:, | and | or )(?:task )?\d+)*)", sentence)
    return {int(number) for words in lists for number in re.findall(r"\d+", words)}


def names(sentence, word):
    return re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", sentence) is not None


def line_of(recorded, source):
    """The text of the accused line, in the scene or in the copy of it that the dump keeps."""
    path = pathlib.Path(source["file"])
    for file in (path, recorded.scene / path, recorded.dump / path):
        if file.is_file() and file.resolve().is_relative_to(root.resolve()):
            lines = file.read_text().split("\n")
            return lines[source["line"] - 1] if 0 < source["line"] <= len(lines) else ""
    return ""


def judge_sentence(bug, sentence):
    """What is missing in a sentence that must name task, kernel and argument; of a bug between two tasks, both."""
    wrong = []
    tasks = numbers_of_tasks(sentence)
    if not tasks & bug.tasks:
        wrong.append(f"names none of the guilty tasks {shown(bug.tasks)}")
    if bug.others and not any(mine != other for mine in tasks & bug.tasks for other in tasks & bug.others):
        wrong.append(f"does not name the other task, one of {shown(bug.others)}")
    if bug.kernel and not names(sentence, bug.kernel):
        wrong.append(f"does not name kernel {bug.kernel}")
    if bug.args and not any(names(sentence, arg) for arg in bug.args):
        wrong.append(f"names none of the arguments {shown(bug.args)}")
    return wrong


def judge_finding(bug, recorded, finding):
    wrong = []
    if bug.is_missing:
        accused = finding.get("task_seq"), finding.get("other_task_seq")
        return [] if accused[0] is None and accused[1] in bug.tasks else [f"task_seq and other_task_seq are {accused}"]
    if finding.get("task_seq") not in bug.tasks | bug.others:
        wrong.append(f"task_seq is {finding.get('task_seq')}, expected one of {shown(bug.tasks | bug.others)}")
    if bug.kernel and not bug.others and bug.kernel not in (finding.get("kernel") or "").split("+"):
        wrong.append(f"kernel is {finding.get('kernel')}, expected {bug.kernel}")
    if bug.args and not bug.others and finding.get("arg_name") not in bug.args:
        wrong.append(f"arg_name is {finding.get('arg_name')}, expected one of {shown(bug.args)}")
    if bug.lines:
        line = line_of(recorded, finding["source"]) if finding.get("source") else None
        if line is None or not any(text in line for text in bug.lines):
            wrong.append(f"source is {finding.get('source')} {(line or '').strip()!r}, expected a line with {shown(bug.lines)}")
    return wrong


def judge_run(bug, recorded):
    """Whether the run says itself what it must say."""
    said = recorded.error + (recorded.case.get("error") or "")
    if bug.expected == bugs.REFUSED:
        wrong = judge_sentence(bug, said)
        return [f"the run was not refused: exit code {recorded.code}"] if recorded.code != 2 else [f"refusal {said!r} {one}" for one in wrong]
    if bug.expected == bugs.REPORTED:
        wrong = judge_sentence(dataclasses.replace(bug, args=frozenset()), said)
        return [f"the run did not fail: exit code {recorded.code}"] if recorded.code != 3 else [f"failure {said!r} {one}" for one in wrong]
    if recorded.code == 2:
        return [f"refusal {said!r} {one}" for one in judge_sentence(bug, said)] if bug.may_be_refused else [f"the graph was refused: {said}"]
    if bug.golden_is_right and recorded.case.get("status") != "ok":
        return [f"the results are {recorded.case.get('status')}: the bug is not as hidden as it is meant to be"]
    return []


def judge(bug, recorded, diagnosis):
    """A list of what is wrong with the answer; empty if it is right."""
    wrong = judge_run(bug, recorded)
    if bug.expected == bugs.REFUSED or (bug.may_be_refused and recorded.code == 2):
        return wrong
    if not diagnosis.findings:
        return wrong + [f"no finding (exit code {diagnosis.code}) {diagnosis.error.strip()}"]
    first = diagnosis.findings[0]
    if diagnosis.code != 1:
        wrong.append(f"exit code {diagnosis.code}, expected 1")
    if diagnosis.text is not None:
        line = diagnosis.text.split("\n", 1)[0]
        wrong += [f"first line {line!r} {one}" for one in judge_sentence(bug, line)]
    if bug.group == "missing edge":  # what follows from it is no finding
        wrong += [f"another finding: {f['sentence']}" for f in diagnosis.findings[1:] if f["task_seq"] not in bug.tasks | bug.others]
    return wrong + judge_sentence(bug, first["sentence"]) + judge_finding(bug, recorded, first)


def judge_good(diagnosis):
    wrong = [f"finding in a good scene: {finding.get('sentence')}" for finding in diagnosis.findings[:3]]
    if diagnosis.code != 0:
        wrong.append(f"exit code {diagnosis.code}, expected 0 {diagnosis.error.strip()}")
    return wrong


def shown(values):
    values = sorted(values)
    return ", ".join(map(str, values[:6])) + (f" ... {values[-1]}" if len(values) > 6 else "")
