"""Whether every record of a journal is valid. One bad record is enough to refuse its block."""
from __future__ import annotations

from typing import Iterator

import numpy as np

from .dtypes import DTYPES
from .record_heads import (DISPATCH, EDGES, END, EXECUTION, FINDING, LOSS, NONE, RESULT, RUN, RUN_ARG, SAMPLE, SCALAR,
                           SKIPPED, STATS, TENSOR, Heads, is_known)

# The least number of words of a record of each type; a head has 4.
_LEAST_WORDS = np.full(256, 4)
_LEAST_WORDS[:17] = [0, 5, 6, 8, 4, 4, 5, 10, 10, 6, 5, 13, 7, 8, 36, 11, 7]
_TASK_LIMIT = np.uint64(1 << 44)
_LAST_DTYPE = DTYPES[-1].code
Check = tuple[np.ndarray, str]


def first_bad(words: np.ndarray, heads: Heads) -> tuple[int, str]:
    """The first invalid record, and why; an empty reason if all are valid.

    Each group of checks reads only what the group before it found to be there.
    """
    bad, reason = len(heads.at), ""
    for group in (_of_sizes, _of_geometry, _of_content):
        for mask, text in group(words, heads.take(slice(0, bad))):
            position = int(np.argmax(mask)) if mask.any() else bad
            if position < bad:
                bad, reason = position, f"a record is invalid: {text}"
    return bad, reason


def _of_sizes(_: np.ndarray, heads: Heads) -> Iterator[Check]:
    yield heads.type == 0, "its type is 0"
    yield heads.words < _LEAST_WORDS[heads.type], "it is shorter than a record of its type"
    yield _is_tensor(heads) & (heads.ndims > 8), "its shape has more than 8 dimensions"


def _is_tensor(heads: Heads) -> np.ndarray:
    """A RESULT begins like a TENSOR."""
    return (heads.type == TENSOR) | (heads.type == RESULT)


def _of_geometry(words: np.ndarray, heads: Heads) -> Iterator[Check]:
    ndims = heads.ndims.astype(np.int64)
    needed = 10 + 2 * ndims + np.where(heads.flags & STATS, 7, 0)
    yield _is_tensor(heads) & (heads.words < needed), "it is too short for its shape, strides and statistics"
    yield _bad_pieces(words, heads, needed), "it is too short for its pieces, or they are invalid"
    yield from _of_run_arguments(words, heads, ndims)
    for kind, length_word in ((RUN, 4), (END, 12)):
        which = np.flatnonzero(heads.type == kind)
        room = (heads.words[which] - length_word - 1) * 8
        mask = np.zeros(len(heads.at), bool)
        mask[which] = words[heads.at[which] + length_word] > room.astype(np.uint64)
        yield mask, "its text is longer than the record"
    edges = np.flatnonzero(heads.type == EDGES)
    mask = np.zeros(len(heads.at), bool)
    mask[edges] = tail_words(words, heads.at[edges]) > heads.words[edges] - 4
    yield mask, "its tail is longer than the record"
    yield _bad_slots(words, heads), "its block_idx, subtask or slots are invalid"


def _bad_pieces(words: np.ndarray, heads: Heads, needed: np.ndarray) -> np.ndarray:
    bad = np.zeros(len(heads.at), bool)
    for i in np.flatnonzero((heads.type == RESULT) & (heads.words >= needed)):
        at, left = int(heads.at[i] + needed[i]), int(heads.words[i] - needed[i]) - 1
        count = int(words[at]) if left >= 0 else 0
        if left < 0 or count * 3 > left:
            bad[i] = True
            continue
        end = 0
        for offset, address, size in words[at + 1:at + 1 + 3 * count].reshape(-1, 3).tolist():
            bad[i] |= offset < end or size == 0 or offset + size >= 1 << 64 or address + size >= 1 << 64
            end = offset + size
    return bad


def tail_words(words: np.ndarray, at: np.ndarray) -> np.ndarray:
    """In EDGES records: the number of words at the end that are not predecessors."""
    return (words[at + 1] >> np.uint64(48)).astype(np.int64)


def _of_run_arguments(words: np.ndarray, heads: Heads, ndims: np.ndarray) -> Iterator[Check]:
    which = np.flatnonzero(heads.type == RUN_ARG)
    is_tensor = np.zeros(len(heads.at), np.uint64)
    is_tensor[which] = words[heads.at[which] + 4]
    yield is_tensor > 1, "it is neither tensor nor scalar"
    yield (is_tensor == 1) & (ndims > 8), "its shape has more than 8 dimensions"
    yield (is_tensor == 1) & (heads.dtype == 0), "its dtype is unknown"
    yield (is_tensor == 1) & (heads.words < 6 + ndims), "it is too short for its shape"


def _bad_slots(words: np.ndarray, heads: Heads) -> np.ndarray:
    """Which dispatches have bad slots; walks through all dispatches at once."""
    bad = np.zeros(len(heads.at), bool)
    which = np.flatnonzero(heads.type == DISPATCH)
    at, end = heads.at[which] + 10, heads.at[which] + heads.words[which]
    count = (words[heads.at[which] + 7] >> np.uint64(32)).astype(np.int64)
    block = words[heads.at[which] + 6].astype(np.uint32)
    subtask = words[heads.at[which] + 7].astype(np.uint32)
    bad[which[(count > 64) | (block >= 1 << 16) | (subtask > 2)]] = True
    for slot in range(64):
        going = (count > slot) & ~bad[which]
        which, at, end, count = which[going], at[going], end[going], count[going]
        if len(which) == 0:
            break
        fits = at + 2 <= end
        head = words[np.where(fits, at, 0)]
        arg, is_tensor, role, dtype, ndims = ((head >> np.uint64(8 * i) & np.uint64(255)).astype(np.int64)
                                              for i in range(5))
        at = at + np.where(is_tensor == 1, 4 + 2 * ndims, 2)
        holds = (arg <= 63) & (is_tensor <= 1) & (role <= 2) & (dtype <= _LAST_DTYPE) & (at <= end)
        bad[which[~(fits & holds & ((is_tensor == 0) | (dtype > 0) & (ndims <= 8)))]] = True
    return bad


def _of_content(words: np.ndarray, heads: Heads) -> Iterator[Check]:
    position = np.arange(len(heads.at))
    yield (heads.type != RUN) & (position == 0), "the first record is not RUN"
    yield (heads.type == RUN) & (position > 0), "there is a second RUN record"
    ends = np.flatnonzero(heads.type == END)
    yield position > (ends[0] if len(ends) else len(position)), "a record follows END"
    yield is_known(heads.type) & (heads.task >= _TASK_LIMIT), "its task number is too large"
    is_entry = (heads.type == TENSOR) | (heads.type == SCALAR)
    yield is_entry & (heads.stage > 1), "its stage is neither before nor after"
    yield is_entry & (heads.role > 2), "its role is unknown"
    is_result = heads.type == RESULT
    yield is_result & (heads.role != 1) & (heads.role != 2), "its role is neither output nor inout"
    yield (is_entry | is_result) & (heads.arg > 63), "its arg_index is too large"
    has_dtype = is_entry | is_result | (heads.type == RUN_ARG)
    yield has_dtype & (heads.dtype > _LAST_DTYPE), "its dtype is unknown"
    yield _is_tensor(heads) & (heads.dtype == 0), "its dtype is unknown"
    yield _negative_shapes(words, heads), "a dimension of its shape is negative"
    yield _bad_executions(words, heads), "its block_idx, subtask, core_id or end is invalid"
    yield _bad_samples(words, heads), "it uses more than its arena holds"
    yield _bad_findings(words, heads), "its candidates or numbers are invalid"
    yield _numbers_from(words, heads, LOSS, 4), "its cause is unknown"
    yield _numbers_from(words, heads, SKIPPED, 2), "its reason is unknown"
    yield (heads.type == LOSS) & (heads.stage > 1) & (heads.stage != NONE), "its stage is unknown"


def _bad_executions(words: np.ndarray, heads: Heads) -> np.ndarray:
    bad = np.zeros(len(heads.at), bool)
    which = np.flatnonzero(heads.type == EXECUTION)
    at = heads.at[which]
    block, subtask = words[at + 5] >> np.uint64(32), words[at + 6].astype(np.uint32)
    core = words[at + 5].astype(np.uint32)
    bad[which] = (words[at + 4] < heads.time[which]) | (block >= 1 << 16) | (subtask > 2) | (core >= 1024)
    return bad


def _bad_findings(words: np.ndarray, heads: Heads) -> np.ndarray:
    bad = np.zeros(len(heads.at), bool)
    for which in np.flatnonzero(heads.type == FINDING).tolist():
        body = words[heads.at[which] + 4:heads.at[which] + 36].tolist()
        first, count = body[5] - (body[5] >> 63 << 64), body[10] >> 32
        tasks = [body[2], body[9]] + body[16:16 + 2 * min(count, 8):2]
        bad[which] = (count > 8 or body[11] < count or abs(first) >= 1 << 53
                      or any(number >= 1 << 53 for number in (body[4], body[6], body[7], body[11], body[12]))
                      or any(task >= _TASK_LIMIT and (task != 2**64 - 1 or i > 1) for i, task in enumerate(tasks)))
    return bad


def _bad_samples(words: np.ndarray, heads: Heads) -> np.ndarray:
    bad = np.zeros(len(heads.at), bool)
    which = np.flatnonzero(heads.type == SAMPLE)
    bad[which] = words[heads.at[which] + 5] > words[heads.at[which] + 6]
    return bad


def _negative_shapes(words: np.ndarray, heads: Heads) -> np.ndarray:
    bad = np.zeros(len(heads.at), bool)
    for kind, shape_word in ((TENSOR, 10), (RESULT, 10), (RUN_ARG, 6)):
        for dimension in range(8):
            which = np.flatnonzero((heads.type == kind) & (heads.ndims > dimension))
            if kind == RUN_ARG:
                which = which[words[heads.at[which] + 4] == 1]
            bad[which] |= words[heads.at[which] + shape_word + dimension].view(np.int64) < 0
    return bad


def _numbers_from(words: np.ndarray, heads: Heads, kind: int, limit: int) -> np.ndarray:
    """Which records of this type have `limit` or more as their first number after the head."""
    bad = np.zeros(len(heads.at), bool)
    which = np.flatnonzero(heads.type == kind)
    bad[which] = words[heads.at[which] + 4].astype(np.uint32) >= limit
    return bad
