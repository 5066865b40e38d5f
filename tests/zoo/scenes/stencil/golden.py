"""Both sweeps over the inner elements of the whole field, and what is computed of it."""
import numpy as np


def blurred(x, weight):
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    return (1 - weight) * x[1:-1, 1:-1] + weight / 4 * around


def golden(args):
    weight = float(args["weight"])
    rows, columns = 70, 99
    following, smooth = np.array(args["next"]), np.array(args["smooth"])
    following[1:rows + 1, 1:columns + 1] = blurred(args["field"].astype(np.float64)[:rows + 2, :columns + 2], weight)
    smooth[1:rows + 1, 1:columns + 1] = blurred(following.astype(np.float64)[:rows + 2, :columns + 2], weight)
    inner = smooth[1:rows + 1, 1:columns + 1].astype(np.float64)
    rough = [[np.sqrt(np.mean(np.diff(inner[i:i + 16, j:j + 32], axis=1) ** 2)) for j in range(0, columns, 32)] for i in range(0, rows, 16)]
    return {"next": following, "smooth": smooth, "columns": inner.sum(axis=0).astype(np.float32), "rough": np.array(rough, dtype=np.float32)}
