#!/usr/bin/python3
"""Installs into an empty prefix, moves it, and uses what is there as a user would: pkg-config with the
shared and the static library, the CMake package, the command, the man page, and the tour of the README.

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
    "include/glassbox/glassbox.h",
    "include/glassbox/chip.h",
    "include/glassbox/kernel.h",
    "include/glassbox/orchestration.h",
    "include/glassbox/runtime.h",
    "include/glassbox/status.h",
    "include/glassbox/tensor.h",
    "share/man/man1/glassbox.1",
]

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


def code_blocks(readme, language):
    return re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL)


def tour(source_root, directory):
    """Writes the files of the README's tour and gives the commands with what they print."""
    readme = (source_root / "README.md").read_text()
    section = readme.split("## A tour", 1)[1]
    for block in code_blocks(section, "c"):
        name = re.match(r"/\* (\S+\.c)", block).group(1)
        (directory / name).write_text(block)
    session = code_blocks(section, "console")
    steps = []
    for line in "".join(session).splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in steps]


def matches(printed, expected):
    """Equal but for times, rates and last digits, which the README shows as of one machine."""

    def blur(text):
        text = re.sub(r" +[\d.]+[kM]? tasks/s", " N tasks/s", text.strip())
        text = re.sub(r"(max abs|max rel|got|want) -?[\d.e+-]*\d", r"\1 N", text)
        return re.sub(r" +\d+(\.\d+)? [mu]s", " N time", text)

    return blur(printed) == blur(expected)


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
        shutil.move(directory / "first", directory / "prefix")  # nothing may remember the old place
        prefix = directory / "prefix"
        library = next(prefix.glob("lib/**/libglassbox.so")).parent
        missing = [name for name in EXPECTED if not (prefix / name).exists()]
        for name in ("libglassbox.a", "pkgconfig/glassbox.pc", "cmake/glassbox/glassbox-config.cmake"):
            missing += [] if (library / name).exists() else [name]
        if missing:
            sys.exit(f"not installed: {missing}")
        environment = {k: v for k, v in os.environ.items() if k not in ("GLASSBOX_CHIP", "LD_LIBRARY_PATH")}
        environment["PKG_CONFIG_PATH"] = str(library / "pkgconfig")
        environment["GLASSBOX_CACHE"] = str(directory / "cache")
        environment["LD_LIBRARY_PATH"] = str(library)
        environment["PATH"] = f"{prefix / 'bin'}:{environment['PATH']}"
        work = directory / "work"
        work.mkdir()
        (work / "examples").symlink_to(source_root.resolve() / "examples")
        passed = 1
        outputs = {}
        for command, expected in tour(source_root, work):
            printed = run(["sh", "-c", f"{{ {command}\n}} 2>&1"], cwd=work, env=environment)
            if not matches(printed, expected):
                sys.exit(f"README: $ {command}\nprints\n{printed}\nand not\n{expected}")
            outputs[command] = expected
            passed += 1
        flags = run(["pkg-config", "--cflags", "--libs", "--static", "glassbox"], env=environment).split()
        static = [f.replace("-lglassbox", "-l:libglassbox.a") for f in flags]
        run(["cc", "tour.c", *static, "-o", "tour_static"], cwd=work, env=environment)
        (work / "CMakeLists.txt").write_text(CMAKE_PROJECT)
        run(["cmake", "-S", ".", "-B", "out", f"-DCMAKE_PREFIX_PATH={prefix}"], cwd=work, env=environment)
        run(["cmake", "--build", "out"], cwd=work, env=environment)
        # A static library cannot know that its prefix was moved: such programs are told.
        chip = {"GLASSBOX_CHIP": str(prefix / "libexec/glassbox/glassbox-chip")}
        for program, extra in (("tour_static", chip), ("out/by_shared", {}), ("out/by_static", chip)):
            printed = run([work / program], cwd=work, env={**environment, **extra})
            if not matches(printed, outputs["./tour"]):
                sys.exit(f"{program} prints\n{printed}")
            passed += 1
        page = subprocess.run(["man", "--warnings", "-l", prefix / "share/man/man1/glassbox.1"], text=True,
                              capture_output=True, env={**environment, "LC_ALL": "C", "MANWIDTH": "80"})
        if page.returncode != 0 or page.stderr:
            sys.exit(f"man: exit code {page.returncode}\n{page.stderr}")
        for command in re.findall(r"^  (\w+)  ", run(["glassbox", "help"], env=environment), re.MULTILINE):
            if f"glassbox {command}" not in page.stdout:
                sys.exit(f"man glassbox says nothing of {command}")
        print(f"{passed + 1} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
