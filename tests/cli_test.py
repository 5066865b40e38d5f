#!/usr/bin/python3
"""The glassbox command as a user sees it: exact output, exit codes, one JSON document.

usage: cli_test.py GLASSBOX
"""
import json
import subprocess
import sys

HELP = """usage: glassbox COMMAND [OPTIONS]

Run task graphs of kernels on a simulated accelerator, and see what every task read and wrote.

commands:
  run         run a scene and compare its outputs with what is expected
  diagnose    name the guilty task, kernel and argument of a run
  view        show what a dump holds: a list, or one tensor's values
  check       say which task is the first that is wrong for its own inputs
  replay      call the kernels of one task again, alone
  diff        compare two dumps, task by task
  blame       say which task wrote an element last, or made the first NaN
  audit       find undeclared writes and reads that came too early
  verify      check every hash, size and count of a dump
  export      write values to one archive, or for another tool
  recover     repair the dump of a killed run
  platforms   list available platforms
  version     print the version
  help        print this help, or that of a command

glassbox help COMMAND describes one command.

examples:
  glassbox run examples/vector_example --dump-tensor
  glassbox view
  glassbox help view
"""

VERSION_HELP = """Usage: glassbox version [OPTION...]
Print the version of glassbox.

  -?, --help                 Give this help list
      --usage                Give a short usage message

exit codes: 0 done; 2 usage, or the output cannot be written

examples:
  glassbox version
"""

PLATFORMS = """PLATFORM HOST MAPS MEMORY DESCRIPTION
a2a3sim  yes              the host maps global memory at the chip's own addresses
a5sim    no               the host cannot map global memory; bytes are copied
"""

failed = passed = 0


def check(glassbox, arguments, code, out=None, err=None, full=False):
    """Runs glassbox; `out` and `err` are the complete text, or after '...' a part of it."""
    global failed, passed
    stdout = open("/dev/full", "w") if full else subprocess.PIPE
    result = subprocess.run([glassbox, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True)
    wanted = {"exit code": (result.returncode, code)}
    for name, got, expected in (("stdout", result.stdout, out), ("stderr", result.stderr, err)):
        if expected is not None and expected.startswith("..."):
            wanted[name] = (expected[3:] in got, True)
        elif expected is not None:
            wanted[name] = (got, expected)
    wrong = {name: pair for name, pair in wanted.items() if pair[0] != pair[1]}
    for name, (got, expected) in wrong.items():
        print(f"glassbox {' '.join(arguments)}: {name} is\n{got!r}\nexpected\n{expected!r}")
    failed += bool(wrong)
    passed += not wrong
    return result.stdout


def main():
    glassbox = sys.argv[1]
    check(glassbox, ["help"], 0, HELP, "")
    check(glassbox, ["--help"], 0, HELP, "")
    check(glassbox, [], 2, "", HELP)
    check(glassbox, ["help", "help"], 0, HELP, "")
    check(glassbox, ["help", "--help"], 0, "...Usage: glassbox help [OPTION...] [COMMAND]\nList all commands,", "")
    check(glassbox, ["help", "version"], 0, VERSION_HELP, "")
    check(glassbox, ["version", "--help"], 0, VERSION_HELP, "")
    check(glassbox, ["help", "run"], 0, "...\n  glassbox run examples/vector_example\n", "")
    check(glassbox, ["help", "nonsense"], 2, "", 'glassbox: unknown command "nonsense"; see glassbox help\n')
    check(glassbox, ["help", "run", "view"], 2, "",
          '...glassbox help: unexpected argument "view": help takes one command\n')
    check(glassbox, ["help"], 2, None, "...writing to stdout: No space left", full=True)
    check(glassbox, ["version"], 0, "glassbox 0.1.0\n", "")
    check(glassbox, ["--version"], 0, "glassbox 0.1.0\n", "")
    check(glassbox, ["platforms"], 0, PLATFORMS, "")
    check(glassbox, ["platforms", "--help"], 0, "...glassbox platforms --json", "")
    check(glassbox, ["platforms", "a2a3sim"], 2, "", '...unexpected argument "a2a3sim": platforms takes no arguments\n')
    check(glassbox, ["platforms", "--nonsense"], 2, "", "...unrecognized option '--nonsense'")
    check(glassbox, ["run", "--help"], 0, "...glassbox run examples/vector_example", "")
    check(glassbox, ["run", "--help"], 0, "...\n Dumps:\n      --dump-args  ", "")
    check(glassbox, ["run", "--help"], 0, "...\n  glassbox run examples/paged_attention --dump-tensor=stats\n", "")
    check(glassbox, ["run"], 2, "", "...missing argument: run takes one scene, a directory with a scene.json\n")
    check(glassbox, ["run", "/dev/null"], 2, "", "...cannot read /dev/null: it is not a regular file")
    check(glassbox, ["version", "extra"], 2, "", '...unexpected argument "extra": version takes no arguments\n')
    check(glassbox, ["view", ""], 2, "", '...glassbox view: empty argument "": view takes one dump\n')
    check(glassbox, ["diff", "", "b"], 2, "", '...glassbox diff: empty argument "": diff takes two dumps\n')
    for arguments, option in ((["check", "--scene", ""], "--scene"), (["replay", "--task", "1", "--save="], "--save"),
                              (["export", "--format", "npz", "-o", ""], "--output")):
        check(glassbox, arguments, 2, "", f"...glassbox {arguments[0]}: {option}: the name is empty\n")
    check(glassbox, ["nonsense"], 2, "", 'glassbox: unknown command "nonsense"; see glassbox help\n')
    check(glassbox, ["platforms", "--json"], 2, None, "...writing to stdout: No space left", full=True)
    check(glassbox, ["platforms"], 2, None, "...writing to stdout: No space left", full=True)
    document = json.loads(check(glassbox, ["platforms", "--json"], 0, None, ""))
    assert [(p["name"], p["host_maps_memory"]) for p in document["platforms"]] == [("a2a3sim", True), ("a5sim", False)]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
