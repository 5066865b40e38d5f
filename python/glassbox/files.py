"""Opens the files of a dump, which may be a stranger's: only regular files, and without waiting."""
from __future__ import annotations

import os
import pathlib
import stat
from typing import BinaryIO

import numpy as np


def open_regular(path: pathlib.Path) -> BinaryIO:
    """Raises OSError if the file does not exist or is not regular. Does not wait for the writer of a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is not a regular file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def map_bytes(path: pathlib.Path) -> np.ndarray:
    """All bytes of a file, mapped read-only."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            return np.zeros(0, np.uint8)
        return np.memmap(file, np.uint8, "r").view(np.ndarray)


def reason(error: OSError) -> str:
    return error.strerror or str(error)
