"""Runs a scene and asserts on its tensors. Run it with: pytest python/examples"""
import functools
import pathlib

import numpy as np

import glassbox

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@functools.cache
def dump():
    return glassbox.run(EXAMPLES / "vector_example", platform="a5sim", runtime="host_build_graph")


def test_product_is_that_of_its_inputs():
    task = dump().task(3)
    assert task.kernels == ("mul",)
    x, y = task.inputs["x"].array(), task.inputs["y"].array()
    np.testing.assert_array_equal(task.outputs["product"].array(), x * y)


def test_the_two_additions_have_different_scalars():
    addends = dump().filter(kernel="add_scalar", kind="scalar")
    assert [record.value for record in addends] == [1.0, 2.0]


def test_nothing_is_infinite():
    for record in dump().filter(kind="tensor", stage="after"):
        assert np.isfinite(record.float32()).all(), record
