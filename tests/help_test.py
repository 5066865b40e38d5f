#!/usr/bin/python3
"""What tells how the command is used: help, man pages and completions say the same, and what they say works.

usage: help_test.py GLASSBOX ROOT

The help of each command is what the others are compared with. Completion is run in interactive shells, bash and,
where it is installed, zsh.
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
SHORT_WORDS = {"in", "out", "before", "after"}  # understood, and not offered
LONGEST = 600  # seconds that anything may take, on a machine that is busy

# Options with few values, with a line that has a wrong one; the error lists the right ones.
CHOICES = {
    "run": ["--platform", "--runtime", "--device", "--build", "--dump-tensor"],
    "view": ["--role", "--stage", "--kind", "--format", "--sort"],
    "export": ["--role", "--stage", "--kind", "--format"],
}
DTYPES = {"run": ["--dump-filter=dtype"], "view": ["--dtype", "--as"], "export": ["--dtype", "--as"]}

# What is typed, and the whole line after one tab; each in a directory with the paths of make_places.
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
    ("glassbox export --format=s", "glassbox export --format=simpler "),
    ("glassbox export -o other\\ place/no", "glassbox export -o other\\ place/note.txt "),
    ("glassbox verify nothing_of_this_name", "glassbox verify nothing_of_this_name"),
    ("glassbox nonsense --j", "glassbox nonsense --j"),
]

# The result of a tab goes to a file, and the line to another when ^Xw asks for it.
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
    if [[ ${(j: :)@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi # changes arrays alone
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
    for scene in (here / "my scenes" / "first one", here / "home" / "at home"):
        scene.mkdir(parents=True)
        (scene / "scene.json").touch()
    (here / "my scenes" / "not one").mkdir()
    (here / "other place").mkdir()
    (here / "other place" / "note.txt").touch()
    for arguments in (["examples/vector_example", "-o", "outputs/vector_example_default"],
                      ["examples/vector_example", "-o", "other place/dump"],
                      ["examples/paged_attention", "-o", "outputs/before"],
                      ["examples/paged_attention", "-o", "outputs/after", "--runtime", "host_build_graph"],
                      ["examples/paged_attention"]):
        result = place.run("run", *arguments, "--dump-tensor")
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
    return re.sub(r"\\f.", "", text.replace("\\-", "-").replace("\\(aq", "'").replace("\\(ti", "~"))


def man_sections(text):
    parts = re.split(r"^\.SH (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2])), parts[1::2]


def man_tags(section):
    return re.findall(r"^\.TP\n(.*)$", section, re.MULTILINE)


def man_options(section):
    found = {}
    for tag in map(unescaped, man_tags(section)):
        names = re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*|-[a-z?])(?![\w-])", tag)
        form = "[=]" if "[=" in tag else "=" if re.search(r"[A-Z]", tag.partition(" ")[2]) else ""
        found.update({name: form for name in names})
    return found


def zsh_options(text, command):
    """Of the function of a command and those that it shares with others."""
    functions = dict(re.findall(r"^(\w+)\(\) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))
    body = functions[f"_glassbox_{command}"]
    for shared in ("_glassbox_filters", "_glassbox_general"):
        if shared in body or shared == "_glassbox_general":
            body += functions[shared]
    found = {}
    for spec in re.findall(r"^ *(?:options=\()?['\"](?:\([^)]*\)|\*)*['\"]?(.*?)\[", body, re.MULTILINE):
        for name in re.findall(r"-\\\?|--?[a-z][a-z0-9-]*[=+]?-?", spec):
            option = name.replace("\\", "").rstrip("-+=")
            found[option] = "[=]" if name.endswith("=-") else "=" if name[-1] in "=+" else ""
    return found


# --- what is compared with the help ---


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
    pages = {page.stem: page.read_text() for page in (place.root / "docs/man").glob("*.1")}
    commands = [command for command in summaries if command != "help"]
    check("man pages", sorted(pages), sorted(["glassbox"] + [f"glassbox-{command}" for command in commands]))
    version = place.run("version").stdout.strip()
    for name, text in sorted(pages.items()):
        sections, order = man_sections(text)
        expected = [s for s in SECTIONS if name != "glassbox" or s != "OPTIONS"]
        check(f"{name}: sections", [s for s in order if s != "COMMANDS"], expected)
        check(f"{name}: version", version in text.splitlines()[0], True)
        unknown = set(re.findall(r"^\.BR (glassbox\S*) \(1\)", sections["SEE ALSO"], re.MULTILINE))
        check(f"{name}: see also", {unescaped(other) for other in unknown} - set(pages), set())
        formatted = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=text, text=True, capture_output=True)
        check(f"{name}: groff", (formatted.returncode, formatted.stderr), (0, ""))
    for command in commands:
        sections, _ = man_sections(pages[f"glassbox-{command}"])
        expected = f"glassbox-{command} - {summaries[command]}"
        check(f"glassbox-{command}: name", unescaped(sections["NAME"]).strip(), expected)
        check(f"glassbox-{command}: options", man_options(sections["OPTIONS"]), help_options(place.help(command)))
        told = re.findall(r"(?:exit codes:|;) (\d) ", " ".join(place.help(command).split()))
        check(f"glassbox-{command}: exit status", man_tags(sections["EXIT STATUS"]), [f".B {code}" for code in told])
        check(f"glassbox: says something of {command}", f'"glassbox {command}"' in pages["glassbox"] or
              f"\n.B glassbox {command}\n" in pages["glassbox"], True)
    return pages


def check_environment(place, pages):
    """The variables that the sources read are those that the pages name."""
    read = set()
    for source in (place.root / "src").rglob("*.c"):
        if not source.name.endswith("_test.c"):
            read |= set(re.findall(r'(?:(?:getenv|absolute_variable)\(|\.variable = )"(\w+)"', source.read_text()))
    named = set()
    for text in pages.values():
        section = man_sections(text)[0]["ENVIRONMENT"]
        named |= {tag.split()[-1] for tag in man_tags(section)}
    check("man pages: environment", named - LOCALE, read)


def example_lines(text):
    """One for each command line; a backslash at the end of one continues it."""
    whole = re.sub(r"\\\n\s*", "", text)
    return [" ".join(line.split()) for line in whole.splitlines() if line.strip() and not line.startswith(".")]


def check_examples(place, commands, pages):
    """Runs each once; those of glassbox run come last, since they change which dump is the latest."""
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
        check(f"$ {line}\n{result.stderr}exit code", result.returncode, 0)
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
                       "COMPLETIONS": str(place.root / "completions")}
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


def accepted_values(place, command, option):
    """As the error of a wrong one lists them."""
    message = place.run(command, "x", f"{option}=nonsense").stderr
    found = re.search(r'"nonsense" is none of ([\w, ]+)', message)
    return set(found.group(1).split(", ")) - SHORT_WORDS if found else message


def check_values(place, shell, name, commands):
    for command in commands:
        for option in CHOICES.get(command, []):
            _, offered = shell.tab(f"glassbox {command} {option}=")
            check(f"{name}: {command} {option}=", offered, accepted_values(place, command, option))
        for option in DTYPES.get(command, []):
            _, offered = shell.tab(f"glassbox {command} {option}=")
            check(f"{name}: {command} {option}= offers dtypes", {"float32", "int8", "bool"} <= offered, True)
            for dtype in offered:
                message = place.run(command, "/nowhere", f"{option}={dtype}", *needed(command)).stderr
                check(f"{command} {option}={dtype}: taken", dtype in message, False)


def needed(command):
    """So that the value of an option is the only thing that can be wrong with the line."""
    return {"run": ["--dump-tensor"], "view": ["--export"], "export": ["--format=npz", "-o", "x"]}[command]


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
    check_values(place, shell, name, commands)
    scenes = {p.name for p in (place.root / "examples").iterdir() if (p / "scene.json").exists()}
    offered = shell.tab("glassbox run examples/")[1]
    check(f"{name}: scenes", {pathlib.PurePath(path).name for path in offered}, scenes)
    shell.close()


def check_completions(place, summaries):
    commands = [command for command in summaries if command != "help"]
    text = (place.root / "completions/_glassbox").read_text()
    for command in commands:
        summary = summaries[command].replace(":", "\\:")
        check(f"_glassbox: summary of {command}", f"{command}:{summary}" in text, True)
        check(f"_glassbox: options of {command}", zsh_options(text, command), help_options(place.help(command)))
    if not terminals.are_there():
        return 2
    check_shell(place, "bash", ["bash", "--noprofile", "--rcfile", "SETUP", "-i"], "bashrc", BASH_SETUP, commands)
    if shutil.which("zsh"):
        check_shell(place, "zsh", ["zsh", "--no-globalrcs", "-i"], ".zshrc", ZSH_SETUP, commands)
        return 0
    print("zsh is not installed: its completion is compared with the help, and not run")
    return 1


def main():
    glassbox, root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory() as temporary:
        place = Place(glassbox, root, pathlib.Path(temporary).resolve())
        make_places(place)
        overview = place.run("help").stdout
        summaries = dict(re.findall(r"^  (\w+)  +(\S.*)$", overview.split("\nexamples:\n")[0], re.MULTILINE))
        commands = [command for command in summaries if command != "help"]
        check("commands", commands, ["run", "view", "check", "replay", "diff", "audit", "verify", "export", "recover", "platforms", "version"])
        check_help(place, commands)
        pages = check_pages(place, summaries)
        check_environment(place, pages)
        skipped = check_completions(place, summaries)
        check_examples(place, commands, pages)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
