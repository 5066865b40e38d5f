#!/usr/bin/python3
"""glassbox view --export and glassbox export when they fail: usage, places that cannot be written to, a full disk,
signals, links, terminals.

usage: export_failure_test.py GLASSBOX
"""
import json
import os
import pathlib
import pty
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

import terminals
from export_support import (GLASSBOX, check, counts, glassbox, large, leftovers, other_dump, other_entry, same)

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU, signal.SIGPIPE, signal.SIGALRM]


def links(root):
    """A dump may be a stranger's: export does not write through links in it."""
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    d = other_dump(root / "linked", [other_entry(0, 0, value=1.5)], b"")
    for form in ("txt", "npy", "csv"):
        (d / form).symlink_to(elsewhere)
        result = glassbox("view", d, "--export", "--format", form, code=2)
        check("a link is refused", f"cannot export to {d / form}: it is a symbolic link" in result.stderr and
              result.stderr.count("\n") == 1 and result.stdout == "", result.stderr)
    check("nothing is written there", not list(elsewhere.iterdir()) and not leftovers(root) and not leftovers(d))
    (root / "link.npz").symlink_to(root / "behind.npz")
    (root / "behind.npz").write_text("old")
    glassbox("export", d, "--format", "npz", "-o", root / "link.npz")
    check("what -o names may be a link", (root / "link.npz").is_symlink() and len(np.load(root / "behind.npz").files) == 1)


def absurd_shape(root):
    """--full of a tensor with a false shape does not print without end."""
    shape = [1 << 20, 1 << 20]
    d = other_dump(root / "absurd", [other_entry(0, 0, shape=shape, strides=[1 << 20, 1], numel=1 << 40, bin_size=8,
                                                 truncated=True)], struct.pack("<2f", 1, 2))
    result = glassbox("view", d, "--index", 0, "--full", code=2, timeout=600)
    check("one sentence", result.stdout == "" and result.stderr.count("\n") == 1 and
          f"{(1 << 40) - 2} elements of entry 0 were cut off" in result.stderr, result.stderr)
    check("without --full it is shown", "[[1. 2.  ?" in glassbox("view", d, "--index", 0).stdout)
    report = glassbox("view", d, "--export", "--format", "npy").stdout
    check("what was kept is exported", np.load(d / "npy/task_0x0000000000000000_before_in0.npy").tolist() == [1, 2], report)


def terminal_width(root):
    """An array takes the width of a terminal, from 40 to 120 columns, and that of numpy in pipes."""
    array = np.arange(900, dtype=np.float32) / 7
    d = other_dump(root / "wide", [other_entry(0, 0, shape=[900], numel=900, bin_size=3600)], array.tobytes())
    for columns, width in ((20, 40), (60, 60), (100, 100), (300, 120)):
        text, _ = terminals.run(columns, [GLASSBOX, "view", d, "--index", 0])
        check(f"an array on {columns} columns", np.array2string(array, max_line_width=width) in text, text[:400])
    check("in a pipe", np.array2string(array, max_line_width=75) in glassbox("view", d, "--index", 0).stdout)


def usage(root, dump):
    archive = root / "usage.npz"
    for arguments, text in ((["--format", "npz"], "missing -o: name the file to write"),
                            (["--format", "simpler"], "missing -o: name the directory to write"),
                            (["-o", archive], "missing --format: expected npz or simpler"),
                            (["--format", "zip", "-o", archive], '--format: unknown value "zip"; expected npz or simpler'),
                            (["--format", "npz", "-o", archive, "--as", "bfloat16"], '--as: "bfloat16" is not a dtype of numpy; expected float16'),
                            (["--format", "simpler", "-o", root / "x", "--as", "int8"], "--as cannot be combined with --format simpler, which keeps every dtype"),
                            (["--format", "npz", "-o", root], "a directory is already there"),
                            (["--format", "simpler", "-o", dump.directory], "a directory with files is already there"),
                            (["--format", "npz", "-o", "/proc/x.npz"], "cannot create /proc/x.npz"),
                            (["--format", "npz", "-o", root / "no/such/x.npz"], "No such file or directory"),
                            (["--format", "simpler", "-o", "/proc/x"], "cannot create /proc/x")):
        result = glassbox("export", dump.directory, *arguments, code=2)
        check(f"one sentence with {text!r}", text in result.stderr and result.stdout == "", result.stderr)
    check("usage errors leave nothing", not archive.exists() and not leftovers(root))
    (dump.directory / "csv").write_text("a file")
    result = glassbox("view", dump.directory, "--export", "--format", "csv", code=2)
    check("a file in the place of the directory", "something else has that name" in result.stderr, result.stderr)
    (dump.directory / "csv").unlink()
    if os.getuid() == 0 and is_for_others():
        os.chmod(root, 0o755)
        result = glassbox("view", dump.directory, "--export", "--format", "csv", code=2, user=65534, group=65534)
        check("a directory that is not writable", result.stderr.count("\n") == 1 and "Permission denied" in result.stderr,
              result.stderr)
    check("failures leave nothing", not leftovers(dump.directory) and not (dump.directory / "csv").exists())


def is_for_others():
    """Whether a user without rights can run the command: not if it lies in a private home directory."""
    try:
        return subprocess.run([GLASSBOX, "version"], user=65534, capture_output=True).returncode == 0
    except PermissionError as error:
        print(f"a directory that is not writable is not tested as another user: {error}")
        return False


def full_disk(root, dump):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    for arguments in (["view", dump.directory, "--export", "--format", "npy"],
                      ["view", dump.directory, "--export", "--format", "txt"],
                      ["export", dump.directory, "--format", "npz", "-o", root / "full.npz"],
                      ["export", dump.directory, "--format", "simpler", "-o", root / "full"]):
        result = glassbox(*arguments, code=4, preexec_fn=limit)
        check("a failed write is one sentence", result.stderr.count("\n") == 1 and "cannot write" in result.stderr and
              result.stdout == "", result.stderr)
    names = {p.name for p in [*root.iterdir(), *dump.directory.iterdir()]}
    check("a failed write leaves nothing", not names & {"full.npz", "full", "npy", "txt"} and
          not leftovers(root) and not leftovers(dump.directory), names)


def ending_signals():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in ENDING:  # Python ignores SIGPIPE, a shell ignores others for background jobs
        signal.signal(number, signal.SIG_DFL)


def interrupted(root, dump, has_terminals):
    """At any moment, an export is complete or absent; an earlier one stays as it was."""
    files, archive, seed = dump.directory / "npy", root / "killed.npz", random.randrange(1 << 30)
    chance = random.Random(seed)
    endings = set()
    ends = pty.openpty() if has_terminals else ()
    wanted = {name: np.frombuffer(raw, np.float32).reshape(shape) for name, _, shape, raw in dump.entries}
    for attempt in range(24):
        directory = root / f"killed{attempt}"
        arguments = [["view", dump.directory, "--export", "--format", "npy"],
                     ["export", dump.directory, "--format", "npz", "-o", archive],
                     ["export", dump.directory, "--format", "simpler", "-o", directory]][attempt % 3]
        stderr = ends[1] if ends and attempt % 2 else subprocess.PIPE  # with the thread that shows progress, and without
        process = subprocess.Popen([GLASSBOX, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=stderr,
                                   preexec_fn=ending_signals)
        time.sleep(chance.random() * 0.06)
        process.send_signal(chance.choice(ENDING))
        message = process.communicate()[1] or b""
        ended = process.returncode
        endings.add(ended < 0)
        check(f"the end by a signal (seed {seed})", -ended in (0, *ENDING) and message == b"", f"{ended} {message}")
        check("nothing half done", not leftovers(root) and not leftovers(dump.directory))
        if ended == 0:
            check("a complete export", {0: files, 1: archive, 2: directory}[attempt % 3].exists())
        if files.exists():
            check("all files or none", {f.stem: f.stat().st_size for f in files.iterdir()} ==
                  {name: 128 + a.nbytes for name, a in wanted.items()})
        if archive.exists():
            check("a complete archive or none", sorted(np.load(archive).files) == sorted(wanted))
        if directory.exists():
            check("a complete directory or none", (directory / "args.bin").stat().st_size == len(dump.payload) and
                  len(json.loads((directory / "args_dump.json").read_text())["args"]) == len(wanted))
            shutil.rmtree(directory)
    for descriptor in ends:
        os.close(descriptor)
    check(f"some were stopped (seed {seed})", True in endings)
    for name, array in wanted.items():
        if archive.exists():
            check("the values of an archive that is there", same(np.load(archive)[name], array))


def ignored_signal(root, dump):
    """nohup: a signal that the program was started to ignore does not stop it."""
    process = subprocess.Popen([GLASSBOX, "export", dump.directory, "--format", "npz", "-o", root / "nohup.npz"],
                               stdout=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    time.sleep(0.02)
    process.send_signal(signal.SIGHUP)
    check("an ignored signal does nothing", process.wait() == 0 and (root / "nohup.npz").exists())


def interrupted_reading(root):
    """Nothing is made while the dump is read: a signal ends the command at once."""
    d = other_dump(root / "long", [], b"", **dict.fromkeys(["total_args", "before_dispatch", "after_completion",
                   "input_args", "output_args", "inout_args", "truncated_args"]))
    text = (d / "args_dump.json").read_text()
    entries = (json.dumps(other_entry(i, 0, value=i)) for i in range(150000))
    (d / "args_dump.json").write_text(text.replace('"args": []', '"args": [' + ", ".join(entries) + "]"))
    arguments = [GLASSBOX, "export", d, "--format", "npz", "-o", root / "long.npz", "--task", "0x0"]
    _, complete = run_and_count(arguments)
    for _ in range(100):  # on a busy machine the signal may come late
        ended, taken = run_and_count(arguments, after=0.03)
        is_stopped = ended == -signal.SIGINT and taken < complete * 0.8
        if is_stopped:
            break
    check("a signal ends the reading", is_stopped, f"{ended}, {taken} of {complete} s")
    check("and leaves nothing", not leftovers(root))


def run_and_count(arguments, after=None):
    """How it ended, and its processor time; SIGINT comes after the given seconds."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, preexec_fn=ending_signals)
    if after:
        time.sleep(after)
        process.send_signal(signal.SIGINT)
    _, status, usage_of_child = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage_of_child.ru_utime + usage_of_child.ru_stime


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        links(root)
        absurd_shape(root)
        has_terminals = terminals.are_there()
        if has_terminals:
            terminal_width(root)
        interrupted_reading(root)
        big = large(root)
        usage(root, big)
        full_disk(root, big)
        interrupted(root, big, has_terminals)
        ignored_signal(root, big)
    print(f"{counts['passed']} passed, {counts['failed']} failed" + ("" if has_terminals else ", 2 skipped"))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
