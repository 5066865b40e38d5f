"""What the tests share: the command, the examples, and one dump of each."""
from __future__ import annotations

import atexit
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE_ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE_ROOT / "python"))

import glassbox  # noqa: E402

# Each runs on a different combination; all dumps must read alike.
EXAMPLES = {"vector_example": ("host_build_graph", "a5sim"),
            "dump_tensor_example": ("aicpu_build_graph", "a2a3sim"),
            "bgemm": ("tensormap_and_ringbuffer", "a5sim"),
            "mix_spmd": ("aicpu_build_graph", "a5sim"),
            "paged_attention": ("host_build_graph", "a2a3sim")}
_directory = tempfile.TemporaryDirectory(prefix="glassbox-python-test-")
# Thousands of damaged files are written: into memory if possible.
_memory = tempfile.TemporaryDirectory(prefix="glassbox-python-test-",
                                      dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
atexit.register(_directory.cleanup)
atexit.register(_memory.cleanup)


def scratch(name: str) -> pathlib.Path:
    """An empty directory of this name, removed when the tests end."""
    path = pathlib.Path(_memory.name, name)
    path.mkdir(parents=True)
    return path


def disk(name: str) -> pathlib.Path:
    """Like scratch, for dumps that the command writes."""
    path = pathlib.Path(_directory.name, name)
    path.mkdir(parents=True)
    return path


def fixtures() -> pathlib.Path:
    """Dumps that another tool wrote."""
    return pathlib.Path(os.environ.get("GLASSBOX_FIXTURES", SOURCE_ROOT / "tests" / "fixtures" / "simpler"))


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    program = glassbox.command.find_command()
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, errors="replace")


@functools.cache
def has_command(name: str) -> bool:
    return f"\n  {name} " in command("help").stdout


@functools.cache
def example(name: str) -> glassbox.Dump:
    runtime, platform = EXAMPLES[name]
    return glassbox.run(SOURCE_ROOT / "examples" / name, runtime=runtime, platform=platform, dump_args=True,
                        output=pathlib.Path(_directory.name, "examples", name))


def load(path: pathlib.Path):
    return json.loads(path.read_text())


def ordered(value):
    """A form of the value whose equality includes the order of members and the types of numbers."""
    if isinstance(value, dict):
        return [(name, ordered(member)) for name, member in value.items()]
    if isinstance(value, list):
        return ["list", *map(ordered, value)]
    return type(value).__name__, repr(value)
