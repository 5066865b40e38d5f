"""Records of a dump: one tensor or scalar each."""
from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Sequence, overload

import numpy as np

from . import dtypes, filters, hashing, payload
from .errors import DumpError

if TYPE_CHECKING:
    from .dump import Dump

_CHUNK = 4096


class Stats(NamedTuple):
    """Statistics of the kept elements; min and max are values of the dtype. `subnormal` is 0 if it was not counted."""

    min: Any
    max: Any
    mean: float
    nan: int
    inf: int
    zero: int
    subnormal: int


class Record:
    """One argument of a task at one stage: a tensor or scalar. Attributes are the fields of the manifest."""

    __slots__ = ("_dump", "_entry")

    def __init__(self, dump: "Dump", entry: dict[str, Any]) -> None:
        self._dump = dump
        self._entry = entry

    index = property(lambda self: self._entry["index"], doc="Position in the dump.")
    task_id = property(lambda self: self._entry["task_id"], doc='A string such as "0x0000000000000011", or None.')
    task_seq = property(lambda self: self._entry["task_seq"], doc="Number of the task in the order of submission.")
    func_ids = property(lambda self: tuple(self._entry["func_id"]), doc="One for each kernel of the task.")
    kernels = property(lambda self: tuple(self._entry.get("kernel") or [None] * len(self._entry["func_id"])),
                       doc="Names; None for an unknown one.")
    arg_index = property(lambda self: self._entry["arg_index"], doc="Slot in args[].")
    arg_name = property(lambda self: self._entry.get("arg_name"), doc="Name of the slot, or None.")
    role = property(lambda self: self._entry["role"], doc="input, output or inout.")
    stage = property(lambda self: self._entry["stage"], doc="before_dispatch or after_completion.")
    kind = property(lambda self: self._entry["kind"], doc="tensor or scalar.")
    dtype = property(lambda self: self._entry["dtype"], doc="Name of the dtype, such as bfloat16.")
    shape = property(lambda self: tuple(self._entry["shape"]), doc="() for scalars.")
    strides = property(lambda self: tuple(self._entry["strides"]), doc="In elements, on the device.")
    start_offset = property(lambda self: self._entry["start_offset"], doc="In elements, on the device.")
    numel = property(lambda self: self._entry["numel"], doc="Number of elements.")
    is_contiguous = property(lambda self: self._entry["is_contiguous"], doc="Whether it was contiguous on the device.")
    buffer_addr = property(lambda self: self._entry.get("buffer_addr"), doc="A string, or None.")
    bin_offset = property(lambda self: self._entry["bin_offset"], doc="Offset of the payload in its file.")
    bin_size = property(lambda self: self._entry["bin_size"], doc="Bytes of payload in the dump.")
    hash = property(lambda self: self._entry.get("hash"), doc="XXH3-128, 32 digits, or None.")
    truncated = property(lambda self: self._entry["truncated"], doc="Whether only the first bytes were kept.")
    overwritten = property(lambda self: self._entry["overwritten"], doc="Whether another tool lost the bytes.")
    in_flight = property(lambda self: self._entry["in_flight"], doc="Whether its task did not complete.")
    time_ns = property(lambda self: self._entry.get("time_ns"), doc="When it was captured, since the start of the run.")
    thread = property(lambda self: self._entry.get("thread"), doc="AICPU thread that captured it.")
    block_num = property(lambda self: self._entry.get("block_num"), doc="Blocks of the task.")
    subtasks = property(lambda self: tuple(self._entry.get("subtasks", ())), doc="Names out of aic, aiv0, aiv1.")
    start_ns = property(lambda self: self._entry.get("start_ns"), doc="When the first kernel of the task began, or None.")
    end_ns = property(lambda self: self._entry.get("end_ns"), doc="When its last kernel ended; None if one did not end.")
    cores = property(lambda self: tuple(self._entry.get("cores") or ()), doc="Cores that it ran on; () if unknown.")

    @property
    def is_scalar(self) -> bool:
        return self._entry["kind"] == "scalar"

    @property
    def bits(self) -> int:
        """The raw word of a scalar."""
        return int(self._scalar_field("bits"), 16)

    @property
    def value(self) -> Any:
        """The value of a scalar: a float (exact), int or bool."""
        self._scalar_field("value")
        return dtypes.scalar_value(self.bits, self._dtype)

    @property
    def stats(self) -> Stats | None:
        """Statistics, if the run recorded them."""
        stats = self._entry.get("stats")
        if stats is None:
            return None
        low, high = (dtypes.python_value(stats[name], self._dtype) for name in ("min", "max"))
        return Stats(low, high, float(stats["mean"]), *(stats[name] for name in ("nan", "inf", "zero", "subnormal")))

    def raw(self) -> np.ndarray:
        """The stored bytes of payload: a view."""
        what = self._describe()
        if self.is_scalar:
            raise payload.missing(what, "a scalar has no payload; use record.value")
        if self.overwritten:
            raise payload.missing(what, "its bytes were overwritten before they were kept")
        if self.bin_size == 0 and self.numel > 0:
            level = self._dump.level
            raise payload.missing(what, "the dump has no payload for it" + (f" (level {level})" if level else ""))
        return self._dump._payload.bytes_at(self.bin_offset, self.bin_size, what)

    def array(self, as_type: Any = None, allow_truncated: bool = False) -> np.ndarray:
        """The tensor: a read-only view of the file, or with `as_type`, any numpy dtype, a copy of the values.

        A view shows dtypes that numpy lacks as they are stored: bfloat16 as uint16, those of 8 and 4 bits as uint8.
        A truncated tensor raises NoPayload; with `allow_truncated` the result is the elements that were kept, in one
        dimension. A scalar is an array without dimensions.
        """
        if self.is_scalar:
            return self._scalar_array(as_type)
        raw, dtype, shape, what = self.raw(), self._dtype, self.shape, self._describe()
        if not self.truncated:
            stored = payload.shaped(raw, dtype, shape, what)
        elif allow_truncated:
            stored = payload.flat(raw, dtype)
        else:
            raise payload.missing(what, f"it is truncated: {len(raw)} bytes of {dtypes.row_bytes(dtype, shape)} were kept; "
                                        "use array(allow_truncated=True) for these")
        if as_type is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                return self._decode(stored).astype(as_type)
        return payload.with_truth_values(stored) if dtype.kind == "bool" else stored

    def float32(self, allow_truncated: bool = False) -> np.ndarray:
        """The values as float32: exact for dtypes of up to 16 bits and float32, else rounded to nearest."""
        return self.array(np.float32, allow_truncated)

    def verify(self) -> bool:
        """Whether the payload matches its recorded hash."""
        raw = self.raw()
        if self.hash is None:
            raise DumpError(f"{self._describe()}: the dump has no hash for it")
        return hashing.xxh3_128(np.ascontiguousarray(raw)) == int(self.hash, 16)

    def to_dict(self) -> dict[str, Any]:
        """The entry of the manifest: its fields, types and order."""
        return copy.deepcopy(self._entry)

    def _decode(self, stored: np.ndarray) -> np.ndarray:
        dtype, columns = self._dtype, self.shape[-1] if self.shape else 1
        if dtype.is_packed and self.truncated:
            return dtypes.decode_flat_pairs(stored, dtype, columns)
        return dtypes.decode(stored, dtype, columns)

    def _scalar_array(self, as_type: Any) -> np.ndarray:
        dtype = self._dtype
        bits = self.bits & (1 << dtype.bits) - 1
        stored = np.frombuffer(bits.to_bytes(dtype.storage.itemsize, "little"), dtype.storage).reshape(())
        if as_type is None:
            return payload.with_truth_values(stored) if dtype.kind == "bool" else stored
        with np.errstate(over="ignore", invalid="ignore"):
            return np.array(self.value).astype(as_type)

    @property
    def _dtype(self) -> dtypes.DType:
        return dtypes.BY_NAME[self._entry["dtype"]]

    def _scalar_field(self, name: str) -> Any:
        if not self.is_scalar:
            raise DumpError(f"{self._describe()}: it is a tensor and has no {name}; use record.array()")
        if name not in self._entry:
            raise DumpError(f"{self._describe()}: the dump has no value for it")
        return self._entry[name]

    def _describe(self) -> str:
        entry = self._entry
        kernel = "+".join(name or f"func {function}" for name, function in zip(self.kernels,
            self.func_ids)) or "unknown"
        return f"record {entry['index']} (task {entry['task_seq']}, kernel {kernel}, arg {entry['arg_index']}, {entry['stage']})"

    def __repr__(self) -> str:
        what = repr(self._entry.get("value")) if self.is_scalar else f"{list(self.shape)}"
        name = f" {self.arg_name}" if self.arg_name else ""
        return f"<{self._describe()}:{name} {self.role} {self.dtype} {what}>"


class Result(Record):
    """An output or in-out tensor of the run as it was at the end. It has no task and no stage."""

    __slots__ = ()
    name = property(lambda self: self._entry["name"], doc="Name of the argument of the run, or None.")
    pieces = property(lambda self: copy.deepcopy(self._entry["pieces"]),
                      doc="Where its bytes lay in global memory: offset, address and bytes of each piece.")
    in_flight = property(lambda self: self._entry["in_flight"], doc="Whether the run failed before its end.")
    task_id = task_seq = stage = arg_name = None
    func_ids = kernels = ()
    kind, overwritten, is_scalar, is_contiguous, start_offset = "tensor", False, False, True, 0

    @property
    def strides(self) -> tuple[int, ...]:
        """Of a row-major tensor, in which rows of packed elements begin at a byte."""
        strides, step, is_packed = [], 1, self._dtype.is_packed
        for length in reversed(self.shape):
            strides.insert(0, step)
            step *= max(length + (length % 2 if is_packed and len(strides) == 1 else 0), 1)
        return tuple(strides)

    def _describe(self) -> str:
        return f"result {self.index} (argument {self.arg_index} of the run, {self.name or 'unnamed'})"

    def __repr__(self) -> str:
        return f"<{self._describe()}: {self.role} {self.dtype} {list(self.shape)}>"


class Records(Sequence[Record]):
    """Some records of a dump, in its order."""

    def __init__(self, dump: "Dump", indices: np.ndarray) -> None:
        self._dump = dump
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, which: int) -> Record: ...

    @overload
    def __getitem__(self, which: slice) -> "Records": ...

    def __getitem__(self, which: int | slice) -> "Record | Records":
        if isinstance(which, slice):
            return Records(self._dump, self._indices[which])
        if not -len(self) <= which < len(self):
            raise IndexError(f"index {which} is out of range: there are {len(self)} records")
        return next(self._make(self._indices[which:which + 1] if which != -1 else self._indices[-1:]))

    def __iter__(self) -> Iterator[Record]:
        for begin in range(0, len(self), _CHUNK):
            yield from self._make(self._indices[begin:begin + _CHUNK])

    def _make(self, indices: np.ndarray) -> Iterator[Record]:
        return (Record(self._dump, entry) for entry in self._dump._source.entries(indices))

    def filter(self, **keys: Any) -> "Records":
        """The records that match all keys: kernel (name or glob), func, task, arg, role, stage, kind, dtype.

        func, task and arg take a number, a range such as "10..20" or a Python range; task also takes an id such as
        "0x11", arg a name or glob. A list matches any of its values.
        """
        source = self._dump._source
        return Records(self._dump, self._indices[filters.matching(keys, source)[self._indices]])

    def to_dicts(self) -> list[dict[str, Any]]:
        """The entries of the manifest, for example for a DataFrame."""
        return [record._entry for record in self]

    def __repr__(self) -> str:
        return f"<{len(self)} records of {self._dump.path}>"
