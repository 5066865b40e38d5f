"""All chunks in double, but for the denormals of `d`, which keep fewer digits."""
import numpy as np

CHUNK = 256


def golden(args):
    x, y, totals = args["x"].astype(np.float64), [], []
    for c, start in enumerate(range(0, len(x), CHUNK)):
        a = x[start:start + CHUNK] ** 2
        around, count = a.copy(), np.ones(len(a))
        for here, there in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
            around[here] += a[there]
            count[here] += 1
        b = around / count
        power = 2.0 ** int(args["shifts"][c])
        e = (b.astype(np.float32) / power).astype(np.float32) * power
        y.append((b + e) / 2)
        totals.append(b.sum())
    y = np.concatenate(y)
    return {"y": y.astype(np.float32), "totals": np.array(totals, np.float32), "z": (y - sum(totals) / len(x)).astype(np.float32)}
