#!/usr/bin/python3
"""How the command explains itself: help, manual pages and completions, all made from the tables of the commands.

usage: help_test.py GLASSBOX ROOT

Pages and completions come from the build. Every example is run. Completion is tried in interactive shells: bash and,
if it is installed, zsh.
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

import terminals

SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "FILES", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"]
LOCALE = {"LC_ALL", "LC_CTYPE", "LANG"}  # read by the C library
LONGEST = 600  # the most seconds that anything may take, even on a busy machine

# What is typed, and the complete line after one tab, in a directory with the paths of make_places.
LINES = [
    ("glassbox pl", "glassbox platforms "),
    ("glassbox help vi", "glassbox help view "),
    ("glassbox run --pla", "glassbox run --platform="),
    ("glassbox run --platform=a5", "glassbox run --platform=a5sim "),
    ("glassbox run --platform a5", "glassbox run --platform a5sim "),
    ("glassbox run -p a5", "glassbox run -p a5sim "),
    ("glassbox run --no-g", "glassbox run --no-golden "),
    ("glassbox run my", "glassbox run my\\ scenes/"),
    ("glassbox run my\\ scenes/", "glassbox run my\\ scenes/first\\ one/"),
    ("glassbox run --json my\\ scenes/f", "glassbox run --json my\\ scenes/first\\ one/"),
    ("glassbox run ~/at", "glassbox run ~/at\\ home/"),
    ("glassbox run examples/vector_e", "glassbox run examples/vector_example/"),
    ("glassbox run examples/vector_example/", "glassbox run examples/vector_example/scene.json "),
    ("glassbox run examples/vector_example --case co", "glassbox run examples/vector_example --case constant "),
    ("glassbox run examples/vector_example/scene.json --case=al", "glassbox run examples/vector_example/scene.json --case=all "),
    ("glassbox run ~/at\\ home --rounds 2 --case=la", "glassbox run ~/at\\ home --rounds 2 --case=large "),
    ("glassbox run --case a", "glassbox run --case all "),
    ("glassbox run nowhere --case o", "glassbox run nowhere --case o"),
    ("glassbox run -o other", "glassbox run -o other\\ place/"),
    ("glassbox run --output=other", "glassbox run --output=other\\ place/"),
    ("glassbox run x --dump-filter st", "glassbox run x --dump-filter stage="),
    ("glassbox run x --dump-filter=kernel=a,stage=be", "glassbox run x --dump-filter=kernel=a,stage=before_dispatch "),
    ("glassbox view other", "glassbox view other\\ place/"),
    ("glassbox view --sort -na", "glassbox view --sort -nan "),
    ("glassbox view --sort=-na", "glassbox view --sort=-nan "),
    ("glassbox view --kernel so", "glassbox view --kernel softmax_prepare "),
    ("glassbox view other\\ place/dump --kernel=mu", "glassbox view other\\ place/dump --kernel=mul "),
    ("glassbox view nowhere --kernel so", "glassbox view nowhere --kernel so"),
    ("glassbox run x --dump-filter=dtype=bf", "glassbox run x --dump-filter=dtype=bfloat16 "),
    ("glassbox run --runtime=h", "glassbox run --runtime=host_build_graph "),
    ("glassbox run --dump-tensor=s", "glassbox run --dump-tensor=stats "),
    ("glassbox view --role inp", "glassbox view --role input "),
    ("glassbox view --dtype=float8_e4", "glassbox view --dtype=float8_e4m3 "),
    ("glassbox view --as int3", "glassbox view --as int32 "),
    ("glassbox view --format n", "glassbox view --format npy "),
    ("glassbox check --scene examples/vector_e", "glassbox check --scene examples/vector_example/"),
    ("glassbox replay --save other", "glassbox replay --save other\\ place/"),
    ("glassbox export --format=s", "glassbox export --format=simpler "),
    ("glassbox export -o other\\ place/no", "glassbox export -o other\\ place/note.txt "),
    ("glassbox verify nothing_of_this_name", "glassbox verify nothing_of_this_name"),
    ("glassbox nonsense --j", "glassbox nonsense --j"),
]

# A tab writes its result to a file; ^Xw writes the line to another.
BASH_SETUP = r"""
bind 'set bell-style none'; bind 'set enable-bracketed-paste off'
source "$COMPLETIONS/glassbox.bash"
offered() { _glassbox; printf '%s\n' "${COMPREPLY[@]}" >"$RESULTS/offered"; }
complete -F offered glassbox
typed() { printf '%s' "$READLINE_LINE" >"$RESULTS/typing"; mv "$RESULTS/typing" "$RESULTS/typed"; READLINE_LINE=''; }
bind -x '"\C-xw": typed'
PS1='READY> '
"""
ZSH_SETUP = r"""
fpath=("$COMPLETIONS" $fpath); autoload -Uz compinit; compinit -u -D
unsetopt beep; unset zle_bracketed_paste; zstyle ':completion:*' menu no
compadd() {
    if [[ ${(j: :)@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi # only changes arrays
    local -a found
    builtin compadd -O found "$@"
    print -rl -- $found >>"$RESULTS/offered"
    builtin compadd "$@"
}
typed() { print -rn -- "$BUFFER" >"$RESULTS/typing"; mv "$RESULTS/typing" "$RESULTS/typed"; BUFFER=''; }
zle -N typed; bindkey '^Xw' typed
PS1='READY> '
"""

failed = passed = 0


def check(what, got, expected):
    global failed, passed
    passed += got == expected
    if got != expected:
        failed += 1
        print(f"{what}: got\n  {got!r}\nexpected\n  {expected!r}")


class Place:
    """The program, the tree, and a directory to work in."""

    def __init__(self, glassbox, root, directory):
        self.glassbox, self.root, self.directory = glassbox, root, directory
        self.build = glassbox.parent
        self.environment = {**os.environ, "PATH": f"{glassbox.parent}:{os.environ['PATH']}", "LC_ALL": "C",
                            "HOME": str(directory / "home"), "TERM": "dumb", "COLUMNS": "200"}

    def run(self, *arguments):
        return subprocess.run([str(self.glassbox), *arguments], text=True, capture_output=True, timeout=LONGEST,
                              cwd=self.directory, env=self.environment)

    def help(self, command):
        return self.run(command, "--help").stdout


def make_places(place):
    """Scenes, dumps and other directories, also with blanks in their names."""
    here = place.directory
    (here / "examples").symlink_to(place.root / "examples")
    (here / "my scenes" / "first one").mkdir(parents=True)
    (here / "my scenes" / "first one" / "scene.json").touch()
    shutil.copytree(place.root / "examples" / "vector_example", here / "home" / "at home")
    (here / "my scenes" / "not one").mkdir()
    (here / "other place").mkdir()
    (here / "other place" / "note.txt").touch()
    for arguments in (["examples/vector_example", "-o", "outputs/vector_example_default"],
                      ["examples/vector_example", "-o", "other place/dump"],
                      ["examples/paged_attention", "-o", "outputs/before"],
                      ["examples/paged_attention", "-o", "outputs/after", "--runtime", "host_build_graph"],
                      ["examples/paged_attention"]):
        result = place.run("run", *arguments, "--dump-tensor", "--dump-args")
        if result.returncode != 0:
            sys.exit(f"glassbox run {arguments}: exit code {result.returncode}\n{result.stderr}")


# --- options: {name: "" for a flag, "=" with a value, "[=]" where the value may be left out} ---


def help_options(text):
    found = {}
    text = text.split("\nexit codes: ")[0]
    for short, long, value in re.findall(r"^ +(?:(-\S), )?(--[a-z][a-z0-9-]*)((?:\[?=)?)", text, re.MULTILINE):
        form = "[=]" if value == "[=" else value
        found[long] = form
        if short:
            found[short] = form
    return found


def unescaped(text):
    return re.sub(r"\\f.", "", text.replace("\\-", "-").replace("\\(aq", "'").replace("\\(ti", "~").replace("\\e", "\\"))


def man_sections(text):
    parts = re.split(r"^\.SH (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2])), parts[1::2]


def man_tags(section):
    return re.findall(r"^\.TP\n(.*)$", section, re.MULTILINE)


# --- help and pages ---


def check_help(place, commands):
    for command in commands:
        text = place.help(command)
        wide = [line for line in text.splitlines() if len(line) > 80]
        check(f"{command} --help: lines over 80 columns", wide, [])
        check(f"{command} --help: has exit codes and examples", ["\nexit codes: " in text, "\nexamples:\n" in text],
              [True, True])
        check(f"help {command}", place.run("help", command).stdout, text)
        check(f"{command} --help: its options", {"--help", "--usage", "-?"} <= set(help_options(text)), True)


def check_pages(place, summaries):
    pages = {page.stem: page.read_text() for page in (place.build / "man").glob("*.1")}
    commands = [command for command in summaries if command != "help"]
    check("man pages", sorted(pages), sorted(["glassbox"] + [f"glassbox-{command}" for command in commands]))
    for name, text in sorted(pages.items()):
        order = man_sections(text)[1]
        left_out = {"FILES", "ENVIRONMENT"} if name != "glassbox" else {"OPTIONS"}
        check(f"{name}: sections", [s for s in order if s not in left_out | {"COMMANDS"}],
              [s for s in SECTIONS if s not in left_out])
        formatted = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=text, text=True, capture_output=True)
        check(f"{name}: groff", (formatted.returncode, formatted.stderr), (0, ""))
    shown = subprocess.run(["man", "-l", str(place.build / "man/glassbox-run.1")], text=True, capture_output=True,
                           env={**place.environment, "LC_ALL": "C.UTF-8", "MANWIDTH": "100"}).stdout
    check("glassbox-run, as man shows it: an option", "       -p, --platform NAME\n              a2a3sim (default) or a5sim." in shown, True)
    check("glassbox-run: an exit status", re.search(r"^       3 +The +device +failed: ", shown, re.MULTILINE) is not None, True)
    return pages


def check_environment(place, pages):
    """The page names exactly the variables that the sources read."""
    read = set()
    for source in (place.root / "src").rglob("*.c"):
        if not source.name.endswith("_test.c"):
            read |= set(re.findall(r'(?:(?:getenv|absolute_variable)\(|\.variable = )"(\w+)"', source.read_text()))
    section = man_sections(pages["glassbox"])[0]["ENVIRONMENT"]
    check("glassbox.1: environment", {tag.split()[-1] for tag in man_tags(section)} - LOCALE, read)


def example_lines(text):
    """One for each command line; a backslash at the end of one continues it."""
    whole = re.sub(r"\\\n\s*", "", text)
    return [" ".join(line.split()) for line in whole.splitlines() if line.strip() and not line.startswith(".")]


# Examples about runs that went wrong; the dumps here are of good ones.
WITHOUT_ANSWER = {"glassbox blame": 2, "glassbox blame --nan": 1, "glassbox view --first-nan": 1}


def check_examples(place, commands, pages):
    """Runs each once; glassbox run comes last, because it changes which dump is the latest."""
    lines = set()
    for command in ["", *commands]:
        text = place.help(command) if command else place.run("help").stdout
        page = man_sections(pages[f"glassbox-{command}" if command else "glassbox"])[0]
        own = example_lines(text.split("\nexamples:\n", 1)[1]) + example_lines(unescaped(page["EXAMPLES"]))
        strange = [line for line in own if not line.startswith(f"glassbox {command}")]
        check(f"glassbox {command}: examples of something else", strange, [])
        lines |= set(own) - set(strange)
    for line in sorted(lines, key=lambda line: (line.startswith("glassbox run"), line)):
        result = subprocess.run(["sh", "-c", line], text=True, capture_output=True, timeout=LONGEST, cwd=place.directory,
                                env=place.environment)
        check(f"$ {line}\n{result.stderr}exit code", result.returncode, WITHOUT_ANSWER.get(line, 0))
        if "--json" in line and result.returncode == 0:
            json.loads(result.stdout)


# --- completion ---


class Shell:
    """An interactive shell that is typed into."""

    def __init__(self, place, arguments, setup_name, setup):
        self.directory = place.directory
        self.results = place.directory / "results"
        shutil.rmtree(self.results, ignore_errors=True)
        self.results.mkdir()
        (self.results / setup_name).write_text(setup)
        environment = {**place.environment, "RESULTS": str(self.results), "ZDOTDIR": str(self.results),
                       "COMPLETIONS": str(place.build / "completions")}
        arguments = [a.replace("SETUP", str(self.results / setup_name)) for a in arguments]
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(self.directory)
            os.execvpe(arguments[0], arguments, environment)
        self.printed = ""
        self._wait(lambda: "READY> " in self.printed, "its prompt")

    def _wait(self, is_done, what):
        end = time.monotonic() + LONGEST
        while not is_done():
            if time.monotonic() > end:
                sys.exit(f"waiting for {what}: nothing in {LONGEST} s; printed so far:\n{self.printed}")
            if select.select([self.terminal], [], [], 0.01)[0]:
                self.printed += os.read(self.terminal, 65536).decode(errors="replace")

    def tab(self, line):
        """The line after a tab, and what was offered."""
        for name in ("offered", "typed"):
            (self.results / name).unlink(missing_ok=True)
        os.write(self.terminal, line.encode() + b"\t\x18w")
        self._wait((self.results / "typed").exists, f"completion of {line!r}")
        offered = self.results / "offered"
        words = offered.read_text().splitlines() if offered.exists() else []
        return (self.results / "typed").read_text(), {word.rstrip(" ") for word in words if word}

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)


def with_forms(words):
    """The options that were offered, in the form of help_options."""
    found = {}
    for word in sorted(words):
        name = word.rstrip("=")
        found[name] = "[=]" if name in found else "=" if word.endswith("=") else ""
    return found


def check_shell(place, name, arguments, setup_name, setup, commands):
    shell = Shell(place, arguments, setup_name, setup)
    check(f"{name}: commands", shell.tab("glassbox ")[1] >= {*commands, "help"}, True)
    for command in commands:
        expected = {n: f for n, f in help_options(place.help(command)).items() if n.startswith("--")}
        offered = with_forms(shell.tab(f"glassbox {command} --")[1])
        if name == "zsh":  # which adds the sign by itself
            offered, expected = set(offered), set(expected)
        check(f"{name}: options of {command}", offered, expected)
    for line, expected in LINES:
        check(f"{name}: {line!r} and a tab", shell.tab(line)[0], expected)
    check(f"{name}: cases", shell.tab("glassbox run examples/paged_attention --case ")[1],
          {"all", "small", "medium", "large"})
    scenes = {p.name for p in (place.root / "examples").iterdir() if (p / "scene.json").exists()}
    offered = shell.tab("glassbox run examples/")[1]
    check(f"{name}: scenes", {pathlib.PurePath(path).name for path in offered}, scenes)
    shell.close()


def check_completions(place, summaries):
    commands = [command for command in summaries if command != "help"]
    if not terminals.are_there():
        return 2
    check_shell(place, "bash", ["bash", "--noprofile", "--rcfile", "SETUP", "-i"], "bashrc", BASH_SETUP, commands)
    if shutil.which("zsh"):
        check_shell(place, "zsh", ["zsh", "--no-globalrcs", "-i"], ".zshrc", ZSH_SETUP, commands)
        return 0
    print("zsh is not installed: its completion is not tried")
    return 1


def main():
    glassbox, root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory() as temporary:
        place = Place(glassbox, root, pathlib.Path(temporary).resolve())
        make_places(place)
        overview = place.run("help").stdout
        summaries = dict(re.findall(r"^  (\w+)  +(\S.*)$", overview.split("\nexamples:\n")[0], re.MULTILINE))
        commands = [command for command in summaries if command != "help"]
        check("commands", commands, ["run", "diagnose", "view", "check", "replay", "diff", "blame", "audit", "verify", "export", "recover", "platforms", "version"])
        check_help(place, commands)
        pages = check_pages(place, summaries)
        check_environment(place, pages)
        skipped = check_completions(place, summaries)
        check_examples(place, commands, pages)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
