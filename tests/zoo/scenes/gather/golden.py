"""The embedding in numpy. float16 and bfloat16 round after each step, as they do in the graph."""
import numpy as np


def bfloat16(x):
    """The nearest bfloat16, ties to even, as float32."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)


def golden(args):
    ids, scales = args["ids"], args["scales"].astype(np.float32)
    rows = args["table"][ids].astype(np.float32) - float(args["zero_point"])
    x = (scales[ids][:, None] * rows).astype(np.float16).astype(np.float64)
    w = (np.float32(args["step"]) * args["weights"].astype(np.float32)).astype(np.float16).astype(np.float64)
    y = bfloat16(x @ w)
    codes = np.clip(np.rint(y / np.float32(args["out_step"])), -128, 127).astype(np.int8)
    record = args["records"].astype(np.uint64)
    seed = record[:, 1] + (record[:, 2] << np.uint64(8)) + (record[:, 3] << np.uint64(16)) + (record[:, 4] << np.uint64(24))
    mine = np.arange(len(ids)) // 8
    marks = seed[mine] * np.uint64(31) + ids.astype(np.uint64) ^ np.uint64(0)
    marks = (marks & np.uint64(0xffffffff)) ^ (np.uint64(1) << record[mine, 0] % np.uint64(32))
    counts = args["counts"] + np.bincount(ids, minlength=len(args["counts"])).astype(np.int32)
    return {"y": y, "codes": codes, "counts": counts, "marks": marks.astype(np.uint32).view(np.int32)}
