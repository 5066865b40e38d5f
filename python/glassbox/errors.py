"""The errors of this package; each says in one sentence what was read, what is wrong, and what to do."""
from __future__ import annotations

from typing import Any


class Error(Exception):
    """The base of all errors of this package."""


class DumpError(Error):
    """A dump, or a part of it, cannot be read."""


class NoPayload(DumpError):
    """The dump does not have the bytes of this tensor, or not all of them."""


class NoHashing(DumpError):
    """Hashes need the module xxhash or libxxhash, and neither is installed."""


class FilterError(Error, ValueError):
    """A filter has an unknown key or value."""


class RunError(Error):
    """A run failed. `dump` is the opened dump that it left, or None."""

    def __init__(self, message: str, exit_code: int | None = None, result: Any = None, dump: Any = None,
                 stderr: str = "") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.result = result
        self.dump = dump
        self.stderr = stderr
