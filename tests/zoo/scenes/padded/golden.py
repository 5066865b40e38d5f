"""Tiles of eight rows, each scaled, every second with a bias; the sum of all rows so far, and that of what is positive in each tile."""
import numpy as np

ROWS = 8


def golden(args):
    x, factor = args["x"].astype(np.float64), float(args["factor"])
    starts = range(0, len(x), ROWS)
    tiles = [factor * x[start:start + ROWS] + t % 2 for t, start in enumerate(starts)]
    p = np.cumsum([tile.sum(axis=0) for tile in tiles], axis=0)
    s = np.array([tile[tile > 0].sum() for tile in tiles])
    return {"y": np.concatenate(tiles).astype(np.float32), "p": p.astype(np.float32), "s": s.astype(np.float32)}
