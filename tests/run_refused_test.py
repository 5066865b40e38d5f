#!/usr/bin/python3
"""What glassbox run refuses, each with its sentence: broken scenes, and wrong or useless options.

usage: run_refused_test.py GLASSBOX
"""
import sys

import numpy as np

from command_support import check, check_in
from run_support import SCENE, TENSORMAP, changed, make, root, run, run_tests


def broken_scenes():
    """(name, scene or text, what the sentence says after the file)"""
    kernel, arg = ["kernels", 0], ["args", 0]
    yield "json", "{", "line 1, column 1: "
    yield "twice", '{"name": 1, "name": 2}', "line 1, column "
    yield "array", "[]", "expected an object, got an array"
    yield "unknown", changed((["kernel"], 1)), 'unknown member "kernel"; expected name, description, kernels'
    yield "name", changed((["name"], None)), '"name" is missing'
    yield "empty_name", changed((["name"], "")), "name: expected a name, got an empty string"
    yield "no_kernels", changed((["kernels"], [])), "kernels: expected at least one kernel"
    yield "member", changed((kernel + ["sorce"], "x")), 'kernels[0]: unknown member "sorce"; expected func_id, name'
    yield "func_id", changed((kernel + ["func_id"], 1024)), "kernels[0].func_id: 1024 is outside 0 to 1023"
    yield "func_text", changed((kernel + ["func_id"], "0")), 'kernels[0].func_id: expected an integer, got "0"'
    yield "core", changed((kernel + ["core"], "aix")), 'kernels[0].core: unknown value "aix"; expected aic or aiv'
    yield "source", changed((kernel + ["source"], "kernels/no.c")), "kernels[0].source: DIR/kernels/no.c: No such file or directory"
    yield "folder", changed((kernel + ["source"], "kernels")), "kernels[0].source: DIR/kernels is not a regular file"
    yield "reference", changed((kernel + ["reference"], "no.c")), "kernels[0].reference: DIR/no.c: No such file or directory"
    yield "signature", changed((kernel + ["signature", 1], "inn")), 'kernels[0].signature[1]: unknown value "inn"; expected in, out, inout or scalar'
    yield "scalar", changed((kernel + ["signature", 2], "scalar:f33")), 'kernels[0].signature[2]: "scalar:f33": unknown dtype "f33"'
    yield "dtype of a tensor", changed((kernel + ["signature", 1], "out:f33[2]")), 'kernels[0].signature[1]: "out:f33[2]": unknown dtype "f33"'
    yield "rank", changed((kernel + ["signature", 1], "out:float32[9]")), 'kernels[0].signature[1]: "out:float32[9]": unknown rank; expected [0] to [8]'
    yield "rank of a scalar", changed((kernel + ["signature", 2], "scalar:float32[0]")), 'kernels[0].signature[2]: "scalar:float32[0]": unknown rank; expected [0] to [8]'
    yield "many", changed((kernel + ["signature"], ["in"] * 33), (kernel + ["arg_names"], None)), \
        "kernels[0].signature: 33 tensors and 0 scalars; at most 32 and 32 are possible"
    yield "arg_names", changed((kernel + ["arg_names"], ["x"])), "kernels[0].arg_names: 1 names; expected 3, one for each word of the signature"
    yield "kernel_rtol", changed((kernel + ["rtol"], -1)), "kernels[0].rtol: expected a tolerance of 0 or more, got -1"
    yield "long", changed((kernel + ["name"], "k" * 64)), "kernels[0].name: a name of 64 bytes; at most 63 are possible"
    second = {**SCENE["kernels"][0], "name": "other"}
    yield "same_id", changed((["kernels"], SCENE["kernels"] + [second])), "kernels[1].func_id: 0 is already used by kernels[0]"
    second = {**SCENE["kernels"][0], "func_id": 1}
    yield "same_name", changed((["kernels"], SCENE["kernels"] + [second])), 'kernels[1].name: "add" is already used by kernels[0]'
    yield "runtime", changed((["orchestrations", "fast"], {})), 'orchestrations: unknown member "fast"; expected '
    yield "no_runtime", changed((["orchestrations"], {})), "orchestrations: expected at least one runtime"
    yield "entry", changed((["orchestrations", TENSORMAP, "entry"], 3)), f"orchestrations.{TENSORMAP}.entry: expected a string, got 3"
    yield "other_runtime", changed((["orchestrations"], {"host_build_graph": {"source": "orchestration.c"}})), \
        f"no orchestration for {TENSORMAP}; choose one of host_build_graph with --runtime"
    yield "dtype", changed((arg + ["dtype"], "float33")), 'args[0].dtype: unknown dtype "float33"; expected float32, float16, '
    yield "role", changed((arg + ["role"], "input")), 'args[0].role: unknown value "input"; expected in, out, inout or scalar'
    yield "no_role", changed((arg + ["role"], None)), 'args[0]: "role" is missing'
    yield "shape", changed((arg + ["shape"], [4, -1])), "args[0].shape[1]: -1 is outside 0 to"
    yield "no_shape", changed((arg + ["shape"], None)), 'args[0]: "shape" is missing'
    yield "dims", changed((arg + ["shape"], [1] * 9)), "args[0].shape: 9 dimensions; at most 8 are possible"
    yield "size", changed((arg + ["shape"], [2 ** 40])), "args[0].shape: more than the 34359738368 bytes that a chip can have"
    yield "fill", changed((arg + ["fill"], "ones")), 'args[0].fill: unknown value "ones"; expected constant, random, arange or file'
    yield "no_value", changed((arg + ["fill"], "constant")), 'args[0]: "value" is missing'
    yield "stray", changed((arg + ["value"], 1)), 'args[0].value: only fill "constant" takes this field, but the fill is random'
    yield "stray_out", changed((["args", 1, "seed"], 1)), 'args[1].seed: only fill "random" takes this field, but the fill is none'
    yield "low", changed((arg + ["low"], 2)), "args[0].low: low is 2 and high is 1; expected low <= high"
    yield "high", changed((arg + ["dtype"], "int8"), (arg + ["high"], 300)), "args[0].high: expected an integer from -128 to 127 for int8, got 300"
    yield "value", changed((["args", 2, "dtype"], "int32")), "args[2].value: expected an integer from -2147483648 to 2147483647 for int32, got 1.5"
    yield "bits", changed((["args", 2, "value"], "0x100000000")), 'args[2].value: "0x100000000" has more than the 32 bits of float32'
    yield "scalar_shape", changed((["args", 2, "shape"], [1])), "args[2].shape: a scalar has no shape"
    yield "scalar_fill", changed((["args", 2, "fill"], "random")), "args[2].fill: a scalar cannot be filled; give it a value"
    yield "tolerance", changed((arg + ["rtol"], 1)), 'args[0].rtol: only outputs have a tolerance, but the role is "in"'
    yield "same_arg", changed((["args", 1, "name"], "x")), 'args[1].name: "x" is already used by args[0]'
    yield "case_arg", changed((["cases"], {"big": {"args": {"z": {}}}})), 'cases.big.args: unknown member "z"; expected x, y or addend'
    yield "case_member", changed((["cases"], {"big": {"arg": 1}})), 'cases.big: unknown member "arg"; expected description or args'
    yield "case_shape", changed((["cases"], {"a": {}, "big": {"args": {"x": {"shape": "4"}}}})), 'cases.big.args.x.shape: expected an array, got "4"'
    yield "case_name", changed((["cases"], {"big": {"args": {"x": {"name": "q"}}}})), 'cases.big.args.x: unknown member "name"'
    yield "golden", changed((["golden", "source"], "golden.cc")), "golden.source: DIR/golden.cc: No such file or directory"
    yield "golden_kind", changed((["golden", "source"], "scene.json")), "golden.source: scene.json is neither a .c nor a .py file"
    file = arg + ["file"]
    from_file = (arg + ["fill"], "file")
    yield "no_file", changed(from_file), 'args[0]: "file" is missing'
    yield "npy", changed(from_file, (file, "golden.c")), "args[0].file: DIR/golden.c: not a .npy file"
    for name, says in (("fortran", "the elements are in Fortran order; expected C order"),
                       ("big", "the elements are big-endian (>f4); expected little-endian"),
                       ("shaped", "shape (8, 4); expected (4, 8)"), ("typed", "elements of <f8; expected <f4 for float32"),
                       ("short", "124 bytes of elements, but its header says 128"),
                       ("third", ".npy version 3.0; expected 1.0 or 2.0"),
                       ("records", "an array of records; expected an array of numbers")):
        yield "npy_" + name, changed(from_file, (file, name + ".npy")), f"args[0].file: DIR/{name}.npy: {says}"


def test_broken_scenes():
    plain = np.zeros((4, 8), np.float32)
    np.save(root / "plain.npy", plain)
    whole = (root / "plain.npy").read_bytes()
    arrays = {"fortran.npy": np.asfortranarray(plain), "big.npy": plain.astype(">f4"), "shaped.npy": plain.reshape(8, 4),
              "typed.npy": plain.astype("f8"), "short.npy": whole[:-4], "third.npy": whole[:6] + b"\3" + whole[7:],
              "records.npy": np.zeros((4, 8), [("a", "<f4")])}
    for name, scene, says in broken_scenes():
        directory = make("broken_" + name, scene, arrays)
        out, err = run(directory, "--json", code=2)
        says = f"glassbox run: {directory}/scene.json: " + says.replace("DIR", str(directory))
        check(f"broken {name}", err[:len(says)], says)
        check(f"broken {name}: one line", (err.count("\n"), out), (1, ""))
    _, err = run(root / "nowhere", code=2)
    check_in("nowhere", "nowhere: No such file or directory; expected a directory with a scene.json, or that file", err)
    (root / "empty").mkdir()
    check_in("empty", "empty/scene.json: No such file", run(root / "empty", code=2)[1])


def test_usage():
    directory = make("adder")
    for arguments, says in (
            (["--blocks", "25"], '--blocks: "25" is not an integer from 1 to 24'),
            (["--threads", "0"], '--threads: "0" is not an integer from 1 to 8'),
            (["--gm", "4X"], '--gm: "4X" is not a size'), (["--gm", "64G"], '--gm: "64G" is not a size'),
            (["-p", "a6sim"], '--platform: unknown value "a6sim"; expected a2a3sim or a5sim'),
            (["--runtime", "fast"], '--runtime: unknown value "fast"; expected tensormap_and_ringbuffer'),
            (["--device", "disk"], '--device: unknown value "disk"; expected process or thread'),
            (["--build", "later"], '--build: unknown value "later"; expected concurrent or sequential'),
            (["--rounds", "-1"], '--rounds: "-1" is not an integer'), (["--timeout", "soon"], '--timeout: "soon" is not a number of seconds'),
            (["another"], 'unexpected argument "another": run takes one scene'),
            (["--dump-tensor", "stats"], 'unexpected argument "stats": write --dump-tensor=stats')):
        check_in("usage", says, run(directory, *arguments, code=2)[1])


def test_usage_of_dumps():
    directory = make("adder")
    tensor, nothing = ["--dump-tensor"], "needs --dump-tensor"
    where = root / "usage"
    where.mkdir()
    for arguments, says in (
            (["--dump-tensor=all"], '--dump-tensor: unknown value "all"; expected full, partial, hybrid or stats'),
            (["--dump-tensor="], '--dump-tensor: unknown value ""; expected full'),
            (["--dump-filter", "kernel=add"], "--dump-filter " + nothing),
            (["--dump-filter", "kernel=add", "--dump-args"], "--dump-filter " + nothing),
            (["--dump-stats"], "--dump-stats " + nothing),
            (["--no-dedup", "--dump-args"], "--no-dedup " + nothing),
            (["--dump-max-tensor", "1K"], "--dump-max-tensor " + nothing),
            (["-o", "here"], "--output needs --dump-tensor or --dump-args"),
            (["--dump-arena", "1M"], "--dump-arena needs --dump-tensor or --dump-args"),
            (["--dump-buffers", "4"], "--dump-buffers needs"),
            (["--dump-stall-timeout", "4"], "--dump-stall-timeout needs"),
            (tensor + ["-o", ""], "--output: the name is empty"),
            (tensor + ["--dump-arena", "63K"], '--dump-arena: "63K" is not a size from 65536 to 4294967296 bytes'),
            (tensor + ["--dump-arena", "5G"], '--dump-arena: "5G" is not a size'),
            (tensor + ["--dump-buffers", "1"], '--dump-buffers: "1" is not an integer from 2 to 64'),
            (tensor + ["--dump-buffers", "65"], '--dump-buffers: "65" is not an integer from 2 to 64'),
            (tensor + ["--dump-max-tensor", "0"], '--dump-max-tensor: "0" is not a size from 1 to'),
            (tensor + ["--dump-stall-timeout", "0"], '--dump-stall-timeout: "0" is not a number of seconds'),
            (tensor + ["--dump-filter", "task=1"] * 33, "--dump-filter: more than 32 filters"),
            (tensor + ["--dump-filter", "kernl=add"], 'dump filter "kernl=add": unknown key "kernl"; expected kernel, func'),
            (tensor + ["--dump-filter", "role=in", "--dump-filter", "kernel=ad"],
             'dump filter "kernel=ad": kernel "ad" matches no kernel; the registered kernels are (func and name) 0 add')):
        out, err = run(directory, *arguments, code=2, cwd=where)
        check_in("usage of dumps", says, err)
        check("usage of dumps: nothing ran", out, "")
    check("usage of dumps: nothing was made", list(where.iterdir()), [])
    (where / "file").write_text("")
    _, err = run(directory, *tensor, "-o", "file/below", code=2, cwd=where)
    check_in("no directory", "creating the directory file for a dump: Not a directory", err)


if __name__ == "__main__":
    sys.exit(run_tests(test_broken_scenes, test_usage, test_usage_of_dumps))
