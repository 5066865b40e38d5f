"""One head of causal attention, in double."""
import numpy as np


def golden(args):
    x, gamma, beta, w = (args[name].astype(np.float64) for name in ("x", "gamma", "beta", "w"))
    tokens = len(x)
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    q, k, v = qkv = ((x - mean) / np.sqrt(variance + 1e-5) * gamma + beta) @ w
    s = np.where(np.arange(tokens)[:, None] >= np.arange(tokens), q @ k.T * float(args["scale"]), -np.inf)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    alpha = float(args["alpha"])
    r = x + alpha * (p @ v)
    return {"qkv": qkv.astype(np.float32), "y": ((1 - alpha) * x + alpha * r).astype(np.float32)}
