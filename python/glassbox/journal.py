"""The journal: blocks and records, as in docs/format.md, all checked before any is used."""
from __future__ import annotations

import pathlib
import struct
from typing import NamedTuple

import numpy as np

from . import hashing, record_checks
from .errors import DumpError
from .files import map_bytes, reason
from .record_heads import MUST_UNDERSTAND, SCALAR, TENSOR, Heads, is_known, read_heads

_HEADER_BYTES, _HEADER_LIMIT, _BLOCK_HEAD_BYTES, _BLOCK_LIMIT = 64, 4096, 32, 1 << 20
_BLOCK_MAGIC = 0x42584247


class Journal(NamedTuple):
    """`words` is the file in words of eight bytes; `heads` has the records of known types, in the order of the file.
    `newer_records` counts the records of unknown types."""

    path: pathlib.Path
    words: np.ndarray
    heads: Heads
    newer_records: int
    checksums_verified: bool

    def of_type(self, *types: int) -> Heads:
        return self.heads.take(np.isin(self.heads.type, types))

    def text(self, at: int, length_word: int) -> bytes:
        """The text of the record at word `at`; the record's word `length_word` has its length."""
        start = at + length_word + 1
        length = int(self.words[start - 1])
        return self.words[start:start + (length + 7) // 8].tobytes()[:length]


class _Problem(NamedTuple):
    """`is_damage`: the bytes changed after they were written. If false, the checksum is right, but the content is unknown."""

    offset: int
    reason: str
    is_damage: bool


class _Walk(NamedTuple):
    starts: list[int]
    first_records: list[int]
    problem: _Problem | None


def read(path: pathlib.Path, advice: str) -> Journal:
    """Maps and checks a journal. `advice` ends the sentence about a broken one."""
    data = _map(path)
    header_bytes = _check_header(path, data)
    words = data[:len(data) & ~7].view("<u8")
    walk = _walk_blocks(data, header_bytes)
    heads = read_heads(words, np.array(walk.starts, np.int64))
    bad, fault = record_checks.first_bad(words, heads)
    _refuse_newer(path, heads.take(slice(0, bad)))
    problem = walk.problem
    if fault:
        block = int(np.searchsorted(walk.first_records, bad, "right")) - 1
        problem = _Problem(int(heads.at[bad]) * 8, fault, False)
        heads = heads.take(np.arange(walk.first_records[block]))
    if len(heads.at) == 0:
        raise DumpError(f"{path} has no readable block: at byte {problem.offset}: {problem.reason}" if problem else
                        f"{path} has no block: the run ended before anything was recorded")
    if problem:
        count = int(np.isin(heads.type, (SCALAR, TENSOR)).sum())
        is_damage = problem.is_damage or not hashing.is_available()
        rest = advice if is_damage else ("the block has its checksum, so this is not damage: a newer reader may be able to "
                                         "read it")
        raise DumpError(f"{path}: at byte {problem.offset}: {problem.reason}; {count} records of tensors and scalars before "
                        f"it are readable; {rest}")
    known = heads.take(is_known(heads.type))
    return Journal(path, words, known, len(heads.at) - len(known.at), hashing.is_available())


def _map(path: pathlib.Path) -> np.ndarray:
    try:
        data = map_bytes(path)
    except OSError as error:
        raise DumpError(f"cannot read {path}: {reason(error)}") from None
    if len(data) < _HEADER_BYTES:
        raise DumpError(f"{path} is not the journal of a dump: it does not begin with the 64 bytes of a header")
    return data


def _refuse_newer(path: pathlib.Path, heads: Heads) -> None:
    """A single record of an unknown type that must be understood is enough."""
    which = np.flatnonzero(~is_known(heads.type) & (heads.type & MUST_UNDERSTAND != 0))
    if len(which):
        raise DumpError(f"{path}: at byte {int(heads.at[which[0]]) * 8}: a record has type {heads.type[which[0]]}, which this "
                        "version does not know and must not skip: reading this dump needs a newer reader")


def _check_header(path: pathlib.Path, data: np.ndarray) -> int:
    """Returns the offset of the first block."""
    magic, version, length = struct.unpack_from("<8s2I", data)
    if magic != b"GBXJRNL1":
        raise DumpError(f"{path} is not the journal of a dump: it does not begin with GBXJRNL1")
    if version not in (1, 2):
        what = "; this reader reads versions 1 to 2: use a newer one" if version else ", which does not exist"
        raise DumpError(f"{path} is a journal of version {version}{what}")
    if length != _HEADER_BYTES and (version == 1 or length % 8 or not _HEADER_BYTES < length <= _HEADER_LIMIT):
        raise DumpError(f"{path}: the header claims to have {length} bytes; version 1 has 64, version 2 a multiple of 8 "
                        f"from that to {_HEADER_LIMIT}")
    return length


def _walk_blocks(data: np.ndarray, header_bytes: int) -> _Walk:
    """Finds where records begin, up to the first bad block."""
    halves = data[:len(data) & ~7].view("<u4")
    walk = _Walk([], [], None)
    offset, sequence = header_bytes, 0
    while offset < len(data):
        head = data[offset:offset + _BLOCK_HEAD_BYTES]
        record_bytes, reason, is_damage = _check_head(head, sequence, data[offset + _BLOCK_HEAD_BYTES:])
        if reason:
            return walk._replace(problem=_Problem(offset, reason, is_damage))
        begin = (offset + _BLOCK_HEAD_BYTES) // 8
        before = len(walk.starts)
        reason = _walk_records(halves[2 * begin:2 * begin + record_bytes // 4], begin, walk.starts)
        count, claimed = len(walk.starts) - before, int(head[8:12].view("<u4")[0])
        if not reason and count != claimed:
            reason = f"a block of {count} records claims to have {claimed}"
        if reason:
            del walk.starts[before:]
            return walk._replace(problem=_Problem(offset, reason, False))
        walk.first_records.append(before)
        offset, sequence = offset + _BLOCK_HEAD_BYTES + record_bytes, sequence + 1
    return walk


def _check_head(head: np.ndarray, sequence: int, rest: np.ndarray) -> tuple[int, str, bool]:
    """Returns the bytes of its records, what is wrong with it, and whether that is damage."""
    if len(head) < _BLOCK_HEAD_BYTES:
        return 0, f"the head of block {sequence} is cut off", True
    magic, record_bytes, _, number, checksum, head_checksum = struct.unpack_from("<4I2Q", head)
    if magic != _BLOCK_MAGIC:
        return 0, "no block begins here" if head.any() else "zeros follow instead of a block", True
    if hashing.is_available() and hashing.xxh3_64(head[:24]) != head_checksum:
        return 0, f"the head of block {sequence} does not match its checksum", True
    if number != sequence:
        return 0, f"block {number} is where block {sequence} should be", True
    if record_bytes < 8 or record_bytes % 8 or record_bytes > _BLOCK_LIMIT:
        return 0, f"block {sequence} claims to have {record_bytes} bytes of records", False
    if record_bytes > len(rest):
        return 0, f"block {sequence} is cut off after {len(rest)} of its {record_bytes} bytes of records", True
    if hashing.is_available() and hashing.xxh3_64(rest[:record_bytes]) != checksum:
        return 0, f"the records of block {sequence} do not match their checksum", True
    return record_bytes, "", False


def _walk_records(halves: np.ndarray, begin: int, starts: list[int]) -> str:
    # lengths[n] is the length of a record that begins at word n, if one does.
    lengths = [*halves[2::2].tolist(), 0]
    at, end, append = 0, len(halves) // 2, starts.append
    while at < end:
        words = lengths[at]
        if words < 4:
            return "a record is invalid: it is shorter than its head"
        append(begin + at)
        at += words
    return "" if at == end else "a record is invalid: it is longer than the rest of its block"
