"""Finds a dump by the same rules as the command."""
from __future__ import annotations

import json
import os
import pathlib

from .errors import DumpError

_MAKE_ONE = "make one with: glassbox run SCENE --dump-tensor"
# Directories inside a dump that hold its files: that of glassbox, and that of other tools.
_INNER = ("tensor_dump", "args_dump")


def is_foreign_manifest(path: pathlib.Path) -> bool:
    """args_dump.json with a bin_file is the manifest of another tool; without, it is about the orchestration."""
    try:
        with open(path, "rb") as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError):
        # Where nothing else is there, whoever reads it tells what is wrong with it.
        return path.is_file()
    return isinstance(document, dict) and "bin_file" in document


def manifest_in(inner: pathlib.Path) -> pathlib.Path | None:
    if (inner / "tensor_dump.json").is_file():
        return inner / "tensor_dump.json"
    return inner / "args_dump.json" if is_foreign_manifest(inner / "args_dump.json") else None


def _holds_files(directory: pathlib.Path) -> bool:
    return (directory / "tensor_dump.rec").is_file() or manifest_in(directory) is not None


def _inner_of(directory: pathlib.Path) -> pathlib.Path | None:
    """Where the files of the dump in a directory are; None where it is no dump."""
    for name in _INNER:
        if (directory / name).is_dir() and (name == "tensor_dump" or _holds_files(directory / name)):
            return directory / name
    return directory if _holds_files(directory) else None


def find(path: str | os.PathLike[str] | None) -> tuple[pathlib.Path, pathlib.Path]:
    """The dump's directory and the directory of its files."""
    given = pathlib.Path("outputs/latest" if path is None else path)
    try:
        inner = _inner_of_any(given)
    except OSError as error:
        raise DumpError(f"looking for a dump at {given}: {error.strerror or error}") from None
    # A dump is named by its own directory, also where it was found by tensor_dump/ or by a link.
    return (inner.parent if inner.name in _INNER else inner), inner


def _inner_of_any(given: pathlib.Path) -> pathlib.Path:
    if not given.exists():
        raise DumpError(f"looking for a dump at {given}: there is none; {_MAKE_ONE}")
    if not given.is_dir():
        raise DumpError(f"looking for a dump at {given}: it is no directory; a dump is a directory with tensor_dump/ inside")
    for directory in (given, given / "latest"):
        inner = _inner_of(directory)
        if inner is not None:
            return inner
    dumps = sorted(entry.name for entry in given.iterdir() if entry.is_dir() and _inner_of(entry) is not None)
    if len(dumps) > 1:
        names = ", ".join(dumps[:2]) + ("..." if len(dumps) > 2 else "")
        raise DumpError(f"{given}: {len(dumps)} dumps are inside ({names}) and no latest; name one of them")
    inner = _inner_of(given / dumps[0]) if dumps else None
    if inner is None:
        raise DumpError(f"{given}: there is no dump: neither tensor_dump/ nor latest nor a directory with tensor_dump/ is "
                        f"inside; {_MAKE_ONE}")
    return inner
