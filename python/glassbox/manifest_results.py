"""Elements of `results` in a manifest: the output and in-out tensors of a run at its end."""
from __future__ import annotations

from typing import Any

from . import manifest_entry
from .manifest_entry import ARGUMENTS_MAX, ROLES
from .manifest_fields import Faulty, choice, integer, missing, refuse, shorten, text, word

_PIECES_MAX = 4096


def read(given: Any) -> tuple[dict[str, Any], bool]:
    """The fields that glassbox writes, and whether it has payload. Raises Faulty if something is wrong."""
    if not isinstance(given, dict):
        raise Faulty(": expected an object")
    arg_index = integer(given, "arg_index", 0, ARGUMENTS_MAX)
    if arg_index is None:
        raise missing("arg_index")
    role, dtype = choice(given, "role", ROLES), manifest_entry.dtype_of(given)
    if role == "input":
        raise refuse(given, "role", "output or inout")
    tensor: dict[str, Any] = {}
    has_payload = manifest_entry.add_tensor(tensor, given, dtype)
    address = word(given, "buffer_addr")
    result = {"index": 0, "arg_index": arg_index, "name": text(given, "name"), "role": role, "dtype": dtype.name,
              "shape": tensor["shape"], "numel": tensor["numel"],
              "buffer_addr": f"0x{address:016x}" if address else None, "pieces": _pieces(given),
              "bin_offset": tensor["bin_offset"], "bin_size": tensor["bin_size"]}
    if "hash" in tensor:
        result["hash"] = tensor["hash"]
    result |= {"truncated": tensor["truncated"], "in_flight": tensor["in_flight"]}
    if given.get("stats") is not None:
        result["stats"] = manifest_entry.stats_of(given["stats"], dtype)
    return result, has_payload


def _pieces(given: dict[str, Any]) -> list[dict[str, Any]]:
    pieces = given.get("pieces")
    if pieces is None:
        return []
    if not isinstance(pieces, list) or len(pieces) > _PIECES_MAX:
        raise refuse(given, "pieces", f"an array of at most {_PIECES_MAX} objects")
    checked, end = [], 0
    for piece in pieces:
        if not isinstance(piece, dict):
            raise Faulty(f".pieces: expected an object, got {shorten(piece)}")
        offset, size, address = integer(piece, "offset"), integer(piece, "bytes", 1), word(piece, "address")
        if offset is None or size is None or address is None:
            raise Faulty(".pieces: offset, address or bytes is missing")
        if offset < end:
            raise Faulty(".pieces: are not ascending and disjoint")
        end = offset + size
        checked.append({"offset": offset, "address": f"0x{address:016x}", "bytes": size})
    return checked
