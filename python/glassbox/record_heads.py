"""Types and flags of records in the journal, and their heads."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .dtypes import DTYPES

(RUN, RUN_ARG, TASK, EDGES, DONE, SCALAR, TENSOR, DISPATCH, LOSS, SKIPPED, END, EXECUTION, SAMPLE, FINDING,
 RESULT, RANGE) = range(1, 17)
PAYLOAD, HASH, STATS, TRUNCATED, IN_FLIGHT, DUPLICATE, CONTIGUOUS, _IN_PIECES, COMPLETE = (1 << i for i in range(9))
NONE = 255
MUST_UNDERSTAND = 128  # a flag in a type: a reader that does not know the type refuses the journal
_FIRST_ANNOUNCED = 17  # dtypes from here on are announced by a record of type MUST_UNDERSTAND + dtype


def is_known(types: np.ndarray) -> np.ndarray:
    return (types >= RUN) & (types <= RANGE) | is_announcement(types)


def is_announcement(types: np.ndarray) -> np.ndarray:
    """Which types announce a dtype that this reader knows."""
    return (types >= MUST_UNDERSTAND + _FIRST_ANNOUNCED) & (types <= MUST_UNDERSTAND + DTYPES[-1].code)


class Heads(NamedTuple):
    """The heads of records, a column for each field; a record begins at word `at` of the file."""

    at: np.ndarray
    type: np.ndarray
    stage: np.ndarray
    role: np.ndarray
    arg: np.ndarray
    dtype: np.ndarray
    ndims: np.ndarray
    flags: np.ndarray
    words: np.ndarray
    thread: np.ndarray
    task: np.ndarray
    time: np.ndarray

    def take(self, which: np.ndarray) -> "Heads":
        return Heads(*(column[which] for column in self))


def read_heads(words: np.ndarray, at: np.ndarray) -> Heads:
    first, second = words[at], words[at + 1]

    def byte(shift: int) -> np.ndarray:
        return (first >> np.uint64(shift)).astype(np.uint8)

    return Heads(at, byte(0), byte(8), byte(16), byte(24), byte(32), byte(40),
                 (first >> np.uint64(48)).astype(np.int64),
                 second.astype(np.uint32).astype(np.int64), (second >> np.uint64(32)).astype(np.uint16),
                 words[at + 2], words[at + 3])
