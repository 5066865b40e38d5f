#!/usr/bin/python3
"""Installs into an empty prefix, moves it, and uses it as a user would: pkg-config with the
shared and the static library, the CMake package, the command, the man pages, the completions, the Python package, and
every command that README.md and DOCUMENTS show.

usage: install_test.py BUILD_DIRECTORY SOURCE_ROOT
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

EXPECTED = [
    "bin/glassbox",
    "libexec/glassbox/glassbox-chip",
    "libexec/glassbox/glassbox-call",
    "include/glassbox/glassbox.h",
    "include/glassbox/chip.h",
    "include/glassbox/kernel.h",
    "include/glassbox/orchestration.h",
    "include/glassbox/runtime.h",
    "include/glassbox/status.h",
    "include/glassbox/tensor.h",
    "share/man/man1/glassbox.1",
    "share/bash-completion/completions/glassbox",
    "share/zsh/site-functions/_glassbox",
    "share/glassbox/python/glassbox/__init__.py",
]

# Documents whose console blocks are run, and must print what they show.
DOCUMENTS = ("docs/embedding.md", "docs/export.md", "docs/scenes.md", "docs/tensor-dump.md", "docs/tour.md", "docs/view.md")

# Completes one line as bash would, with the installed file.
COMPLETE = """source share/bash-completion/completions/glassbox
COMP_LINE='glassbox run --platform a5' COMP_POINT=26 COMP_WORDS=(glassbox run --platform a5) COMP_CWORD=3
_glassbox
echo "${COMPREPLY[*]}"
"""

# Opens a dump with the installed package, and computes again what a task wrote.
READ = """import pathlib, sys, glassbox
assert pathlib.Path(glassbox.__file__).is_relative_to(sys.argv[1]), glassbox.__file__
task = next(task for task in glassbox.open(sys.argv[2]).tasks if "mul" in task.kernels)
product = task.outputs["product"].array()
equal = product == task.inputs["x"].array() * task.inputs["y"].array()
print(product.shape, product.dtype, equal.all(), product.any())
"""

CMAKE_PROJECT = """cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(glassbox 0.1 REQUIRED)
add_executable(by_shared tour.c)
target_link_libraries(by_shared glassbox::shared)
add_executable(by_static tour.c)
target_link_libraries(by_static glassbox::static)
"""


def run(arguments, **options):
    result = subprocess.run([str(a) for a in arguments], text=True, capture_output=True, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def code_blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def write_files(text, directory):
    """Writes the files that a document shows and that begin with a comment with their name."""
    for block in code_blocks(text, "c") + code_blocks(text, "python"):
        name = re.match(r"(?:/\*|#) (\S+\.(?:c|py))\b", block)
        if name:
            path = directory / name.group(1)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block)


def write_scene(text, directory):
    """Writes the scene that scenes.md shows."""
    write_files(text, directory)
    (directory / "scene.json").write_text(code_blocks(text, "json")[0])


def session(text):
    """The commands of the console blocks of a text, with what they print."""
    steps = []
    for line in "".join(code_blocks(text, "console")).splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in steps]


def check_session(name, steps, directory, environment):
    """Runs the commands in order and compares what they print with the document; returns their number."""
    if not steps:
        sys.exit(f"{name}: has no commands")
    for command, expected in steps:
        printed = run(["sh", "-c", f"{{ {command}\n}} 2>&1"], cwd=directory, env=environment)
        if not matches(printed, expected):
            sys.exit(f"{name}: $ {command}\nprints\n{printed}\nand not\n{expected}")
    return len(steps)


def matches(printed, expected):
    """Whether they are equal except for times, rates, addresses and last digits, which depend on the machine."""

    def shorten(number):
        value = float(number.group())
        return "SMALL" if 0 < abs(value) < 1e-4 else f"{value:.2g}"

    def blur(text):
        text = re.sub(r"hash [0-9a-f]{32}", "hash H", text)
        text = re.sub(r"\b0x0*7e[9-f][0-9a-f]{9}\b", "ADDRESS", text)
        text = re.sub(r"; waited \S+ \S+ for room", "", text)
        text = re.sub(r"-?\b\d+\.\d{3,}(e[+-]?\d+)?|\b\d(\.\d+)?e[+-]\d+|\b\d{7,}\b", shorten, text)
        text = re.sub(r"(?m)(?<=\S) +", " ", text)
        text = re.sub(r" +[\d.]+[kM]? tasks/s", " N tasks/s", text.strip())
        text = re.sub(r"(max abs|max rel|got|want) -?[\d.e+-]*\d", r"\1 N", text)
        return re.sub(r" +\d+(\.\d+)?(e\+\d+)? [mun]?s\b", " N time", text)

    return blur(printed) == blur(expected)


def check_pages(prefix, overview, environment):
    """Each command has a page that man shows without a warning; returns the number of pages."""
    commands = re.findall(r"^  (\w+)  ", overview, re.MULTILINE)
    names = ["glassbox"] + [f"glassbox-{command}" for command in commands if command != "help"]
    for name in names:
        page = subprocess.run(["man", "--warnings", "-l", prefix / f"share/man/man1/{name}.1"], text=True,
                              capture_output=True, env={**environment, "LC_ALL": "C", "MANWIDTH": "80"})
        if page.returncode != 0 or page.stderr:
            sys.exit(f"man {name}: exit code {page.returncode}\n{page.stderr}")
        missing = [c for c in commands if f"glassbox {c}" not in page.stdout] if name == "glassbox" else []
        if missing:
            sys.exit(f"man glassbox says nothing of {missing}")
    return len(names)


def main():
    build, source_root = map(pathlib.Path, sys.argv[1:])
    sanitizers = os.environ.get("GLASSBOX_SANITIZE", "")
    if sanitizers:
        print("install: not run with sanitizers: programs of users are built without them")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        run(["cmake", "--install", build, "--prefix", directory / "first"])
        shutil.move(directory / "first", directory / "prefix")  # nothing may depend on the old place
        prefix = directory / "prefix"
        library = next(prefix.glob("lib/**/libglassbox.so")).parent
        missing = [name for name in EXPECTED if not (prefix / name).exists()]
        for name in ("libglassbox.a", "pkgconfig/glassbox.pc", "cmake/glassbox/glassbox-config.cmake"):
            missing += [] if (library / name).exists() else [name]
        if missing:
            sys.exit(f"not installed: {missing}")
        environment = {k: v for k, v in os.environ.items() if k not in ("GLASSBOX_CHIP", "GLASSBOX_CALL", "LD_LIBRARY_PATH")}
        environment["PKG_CONFIG_PATH"] = str(library / "pkgconfig")
        environment["GLASSBOX_CACHE"] = str(directory / "cache")
        environment["LD_LIBRARY_PATH"] = str(library)
        environment["PATH"] = f"{prefix / 'bin'}:/usr/bin:{environment['PATH']}"  # python3 is Debian's
        environment["LC_ALL"] = "C.UTF-8"
        passed = 1
        for document in ("README.md",) + DOCUMENTS:
            place = directory / pathlib.Path(document).name
            place.mkdir()
            (place / "examples").symlink_to(source_root.resolve() / "examples")
            text = (source_root / document).read_text()
            steps = session(text)
            if document == "docs/scenes.md":
                write_scene(text, place / "adder")
                steps.append(("glassbox run adder --case all >/dev/null", ""))  # its golden compares the values
            elif document == "docs/embedding.md":
                write_files(text, place)
                work, outputs = place, dict(steps)
            passed += check_session(document, steps, place, environment)
        flags = run(["pkg-config", "--cflags", "--libs", "--static", "glassbox"], env=environment).split()
        static = [f.replace("-lglassbox", "-l:libglassbox.a") for f in flags]
        run(["cc", "tour.c", *static, "-o", "tour_static"], cwd=work, env=environment)
        (work / "CMakeLists.txt").write_text(CMAKE_PROJECT)
        run(["cmake", "-S", ".", "-B", "out", f"-DCMAKE_PREFIX_PATH={prefix}"], cwd=work, env=environment)
        run(["cmake", "--build", "out"], cwd=work, env=environment)
        # A static library cannot know that its prefix was moved: the environment names the chip.
        chip = {"GLASSBOX_CHIP": str(prefix / "libexec/glassbox/glassbox-chip")}
        for program, extra in (("tour_static", chip), ("out/by_shared", {}), ("out/by_static", chip)):
            printed = run([work / program], cwd=work, env={**environment, **extra})
            if not matches(printed, outputs["./tour"]):
                sys.exit(f"{program} prints\n{printed}")
            passed += 1
        passed += check_pages(prefix, run(["glassbox", "help"], env=environment), environment)
        completed = run(["bash", "--norc", "-c", COMPLETE], cwd=prefix, env=environment)
        if completed != "a5sim\n":
            sys.exit(f"the installed completion completes to {completed!r}")
        run(["glassbox", "run", "examples/vector_example", "--dump-tensor", "-o", "read"], cwd=work, env=environment)
        package = {"PYTHONPATH": str(prefix / "share/glassbox/python"), "PYTHONDONTWRITEBYTECODE": "1"}
        read = run(["/usr/bin/python3", "-c", READ, prefix, "read"], cwd=work, env={**environment, **package})
        if read != "(128, 128) float32 True True\n":
            sys.exit(f"the installed Python package reads {read!r}")
        print(f"{passed + 3} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
