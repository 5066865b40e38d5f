"""The sum of the rows of each part, in double."""
import numpy as np


def golden(args):
    parts = args["x"].astype(np.float64).reshape(3, -1, args["x"].shape[1])
    return {"y": parts.sum(axis=1).astype(np.float32)}
