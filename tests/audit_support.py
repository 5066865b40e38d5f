"""What the suites of glassbox audit share: calling it, and the addresses of a view's bytes."""
import json

import numpy as np

from command_support import check, glassbox

BEFORE, AFTER = "before_dispatch", "after_completion"


def audit(directory, code):
    result = glassbox("audit", directory, "--json")
    if not check(f"audit {directory.name}: exit code and stderr", (result.returncode, result.stderr), (code, "")):
        return {"findings": []}
    return json.loads(result.stdout)


def audit_text(directory, code):
    """The lines of its text."""
    result = glassbox("audit", directory)
    check(f"audit {directory.name}: exit code and stderr", (result.returncode, result.stderr), (code, ""))
    return result.stdout.split("\n")


def place(view):
    """The address of every byte of a view, row-major; a view is (dtype, shape, strides, start_offset, address)."""
    name, shape, strides, start, base = view
    width = np.dtype(name).itemsize
    index = np.indices(shape).reshape(len(shape), -1)
    first = base + (start + np.tensordot(np.array(strides), index, 1)) * width
    return (first[:, None] + np.arange(width)).reshape(-1)
