"""What can go wrong, each with one sentence: what was read, what is wrong with it, what to do."""
from __future__ import annotations

from typing import Any


class Error(Exception):
    """The base of all errors of this package."""


class DumpError(Error):
    """A dump, or a part of it, that cannot be read."""


class NoPayload(DumpError):
    """The bytes of a tensor were asked for, and the dump does not have them, or not all."""


class NoHashing(DumpError):
    """Hashes were asked for, and there is neither the module xxhash nor libxxhash."""


class FilterError(Error, ValueError):
    """A filter with a key or a value that there is not."""


class RunError(Error):
    """A run that failed. `dump` is what it left behind, opened, or None."""

    def __init__(self, message: str, exit_code: int | None = None, result: Any = None, dump: Any = None,
                 stderr: str = "") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.result = result
        self.dump = dump
        self.stderr = stderr
