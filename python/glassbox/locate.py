"""Finds a dump by the same rules as the command."""
from __future__ import annotations

import errno
import os
import pathlib
import re

from .errors import DumpError
from .files import open_regular, reason

_MAKE_ONE = "make one with: glassbox run SCENE --dump-tensor"
_INNER = "tensor_dump"
_FILES = ("tensor_dump.rec", "tensor_dump.json", "args_dump.json")
# The first manifest that exists is used.
_MANIFESTS = ("tensor_dump/tensor_dump.json", "tensor_dump.json", "args_dump.json", "tensor_dump/args_dump.json")
_KEY = re.compile(rb'"bin_file"[ \n\t\r]*:')
_LOOK_BYTES = 64 << 10


def has_bin_file(path: pathlib.Path) -> bool:
    """An args_dump.json of glassbox has no member bin_file. Other tools write it before or after the entries."""
    with open_regular(path) as file:
        begin = file.read(_LOOK_BYTES)
        file.seek(max(os.fstat(file.fileno()).st_size - _LOOK_BYTES, 0))
        return bool(_KEY.search(begin) or _KEY.search(file.read()))


def _is_manifest(path: pathlib.Path) -> bool:
    return path.is_file() and (path.name != "args_dump.json" or has_bin_file(path))


def records_of(directory: pathlib.Path) -> pathlib.Path:
    """The journal of a dump, or without one its manifest."""
    for name in ("tensor_dump/tensor_dump.rec", "tensor_dump.rec"):
        if (directory / name).exists():
            return directory / name
    try:
        for name in _MANIFESTS:
            if _is_manifest(directory / name):
                return directory / name
    except OSError as error:
        raise DumpError(f"looking for a dump at {directory}: {reason(error)}") from None
    raise DumpError(f"cannot open the journal {directory / 'tensor_dump/tensor_dump.rec'}: it does not exist, and there is no "
                    "manifest (tensor_dump.json, or args_dump.json with bin_file) to read instead")


def _is_dump(directory: pathlib.Path) -> bool:
    """Whether it contains tensor_dump/ or files of a dump."""
    return (directory / _INNER).is_dir() or (directory / "tensor_dump.rec").is_file() or any(
        _is_manifest(directory / name) for name in ("tensor_dump.json", "args_dump.json"))


def _is_inner(directory: pathlib.Path) -> bool:
    return (directory.resolve().name == _INNER and not (directory / _INNER).is_dir()
            and any((directory / name).is_file() for name in _FILES))


def find(path: str | os.PathLike[str] | None) -> pathlib.Path:
    """The dump's directory: the one around tensor_dump/, even if tensor_dump/ itself is given."""
    given = pathlib.Path("outputs/latest" if path is None else path)
    try:
        if path is None and not given.exists():
            raise DumpError(f"no dump at {given} below the current directory; name one, or {_MAKE_ONE}")
        if not given.exists():
            raise DumpError(f"looking for a dump at {given}: {os.strerror(errno.ENOENT)}; {_MAKE_ONE}")
        if not given.is_dir():
            raise DumpError(f"looking for a dump at {given}: it is not a directory; a dump is a directory that contains "
                            "tensor_dump/ or a manifest")
        if _is_inner(given):
            return given.parent if given.name == _INNER else given.resolve().parent
        found = [directory for directory in (given, given / "latest") if _is_dump(directory)]
        return found[0] if found else _find_inside(given)
    except OSError as error:
        raise DumpError(f"looking for a dump at {given}: {reason(error)}") from None


def _find_inside(given: pathlib.Path) -> pathlib.Path:
    dumps = sorted(entry.name for entry in given.iterdir() if entry.is_dir() and _is_readable_dump(entry))
    if len(dumps) > 1:
        names = ", ".join(dumps[:2]) + ("..." if len(dumps) > 2 else "")
        raise DumpError(f"{given} holds {len(dumps)} dumps ({names}) but no latest; name one of them")
    if not dumps:
        raise DumpError(f"{given}: no dump found: it has no tensor_dump/, no latest, no directory with a tensor_dump/ and no "
                        f"manifest of another tool (tensor_dump.json, or args_dump.json with bin_file); {_MAKE_ONE}")
    return given / dumps[0]


def _is_readable_dump(directory: pathlib.Path) -> bool:
    """A directory without read permission does not count as a dump."""
    try:
        return _is_dump(directory)
    except OSError:
        return False
