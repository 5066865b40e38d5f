#!/usr/bin/python3
"""What glassbox run refuses, each by its sentence: broken scenes, options that are wrong or mean nothing.

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
    yield "unknown", changed((["kernel"], 1)), '"kernel" is no member here; possible are name, description, kernels'
    yield "name", changed((["name"], None)), '"name" is missing'
    yield "empty_name", changed((["name"], "")), "name: an empty string; a name is expected"
    yield "no_kernels", changed((["kernels"], [])), "kernels: there is none; at least one kernel is expected"
    yield "member", changed((kernel + ["sorce"], "x")), 'kernels[0]: "sorce" is no member here; possible are func_id, name'
    yield "func_id", changed((kernel + ["func_id"], 1024)), "kernels[0].func_id: 1024 is not within 0 to 1023"
    yield "func_text", changed((kernel + ["func_id"], "0")), 'kernels[0].func_id: expected an integer, got "0"'
    yield "core", changed((kernel + ["core"], "aix")), 'kernels[0].core: "aix" is none of aic, aiv'
    yield "source", changed((kernel + ["source"], "kernels/no.c")), "kernels[0].source: DIR/kernels/no.c: No such file or directory"
    yield "folder", changed((kernel + ["source"], "kernels")), "kernels[0].source: DIR/kernels is no regular file"
    yield "reference", changed((kernel + ["reference"], "no.c")), "kernels[0].reference: DIR/no.c: No such file or directory"
    yield "signature", changed((kernel + ["signature", 1], "inn")), 'kernels[0].signature[1]: "inn" is none of in, out, inout, scalar'
    yield "scalar", changed((kernel + ["signature", 2], "scalar:f33")), 'kernels[0].signature[2]: "scalar:f33": "f33" is no dtype'
    yield "many", changed((kernel + ["signature"], ["in"] * 33), (kernel + ["arg_names"], None)), \
        "kernels[0].signature: 33 tensors and 0 scalars; at most 32 and 32 are possible"
    yield "arg_names", changed((kernel + ["arg_names"], ["x"])), "kernels[0].arg_names: 1 names; 3 are expected, one for each of the signature"
    yield "kernel_rtol", changed((kernel + ["rtol"], -1)), "kernels[0].rtol: a tolerance of -1; one of 0 or more is expected"
    yield "long", changed((kernel + ["name"], "k" * 64)), "kernels[0].name: 64 bytes; a name of at most 63 is expected"
    second = {**SCENE["kernels"][0], "name": "other"}
    yield "same_id", changed((["kernels"], SCENE["kernels"] + [second])), "kernels[1].func_id: 0 is that of kernels[0] already"
    second = {**SCENE["kernels"][0], "func_id": 1}
    yield "same_name", changed((["kernels"], SCENE["kernels"] + [second])), 'kernels[1].name: "add" is that of kernels[0] already'
    yield "runtime", changed((["orchestrations", "fast"], {})), 'orchestrations: "fast" is no member here; possible are '
    yield "no_runtime", changed((["orchestrations"], {})), "orchestrations: there is none; at least one runtime is expected"
    yield "entry", changed((["orchestrations", TENSORMAP, "entry"], 3)), f"orchestrations.{TENSORMAP}.entry: expected a string, got 3"
    yield "other_runtime", changed((["orchestrations"], {"host_build_graph": {"source": "orchestration.c"}})), \
        f"there is no orchestration for {TENSORMAP}; there is for host_build_graph"
    yield "dtype", changed((arg + ["dtype"], "float33")), 'args[0].dtype: unknown dtype "float33"; expected float32, float16, '
    yield "role", changed((arg + ["role"], "input")), 'args[0].role: "input" is none of in, out, inout, scalar'
    yield "no_role", changed((arg + ["role"], None)), 'args[0]: "role" is missing'
    yield "shape", changed((arg + ["shape"], [4, -1])), "args[0].shape[1]: -1 is not within 0 to"
    yield "no_shape", changed((arg + ["shape"], None)), 'args[0]: "shape" is missing'
    yield "dims", changed((arg + ["shape"], [1] * 9)), "args[0].shape: 9 dimensions; at most 8 are possible"
    yield "size", changed((arg + ["shape"], [2 ** 40])), "args[0].shape: more than the 34359738368 bytes that a chip can have"
    yield "fill", changed((arg + ["fill"], "ones")), 'args[0].fill: "ones" is none of constant, random, arange, file'
    yield "no_value", changed((arg + ["fill"], "constant")), 'args[0]: "value" is missing'
    yield "stray", changed((arg + ["value"], 1)), 'args[0].value: only a fill of "constant" takes it, and here it is random'
    yield "stray_out", changed((["args", 1, "seed"], 1)), 'args[1].seed: only a fill of "random" takes it, and here it is none'
    yield "low", changed((arg + ["low"], 2)), "args[0].low: low is 2 and high 1; low <= high is expected"
    yield "high", changed((arg + ["dtype"], "int8"), (arg + ["high"], 300)), "args[0].high: 300; an integer from -128 to 127 is expected for int8"
    yield "value", changed((["args", 2, "dtype"], "int32")), "args[2].value: 1.5; an integer from -2147483648 to 2147483647 is expected for int32"
    yield "bits", changed((["args", 2, "value"], "0x100000000")), 'args[2].value: "0x100000000" has more than the 32 bits of float32'
    yield "scalar_shape", changed((["args", 2, "shape"], [1])), "args[2].shape: a scalar has no shape"
    yield "scalar_fill", changed((["args", 2, "fill"], "random")), "args[2].fill: a scalar has a value; it cannot be filled"
    yield "tolerance", changed((arg + ["rtol"], 1)), 'args[0].rtol: a tolerance belongs to an output, and this is "in"'
    yield "same_arg", changed((["args", 1, "name"], "x")), 'args[1].name: "x" is that of args[0] already'
    yield "case_arg", changed((["cases"], {"big": {"args": {"z": {}}}})), 'cases.big.args: "z" is no member here; possible are x, y, addend'
    yield "case_member", changed((["cases"], {"big": {"arg": 1}})), 'cases.big: "arg" is no member here; possible are description, args'
    yield "case_shape", changed((["cases"], {"a": {}, "big": {"args": {"x": {"shape": "4"}}}})), 'cases.big.args.x.shape: expected an array, got "4"'
    yield "case_name", changed((["cases"], {"big": {"args": {"x": {"name": "q"}}}})), 'cases.big.args.x: "name" is no member here'
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
    check_in("nowhere", "nowhere: No such file or directory; a directory with a scene.json, or the file itself", err)
    (root / "empty").mkdir()
    check_in("empty", "empty/scene.json: No such file", run(root / "empty", code=2)[1])


def test_usage():
    directory = make("adder")
    for arguments, says in (
            (["--blocks", "25"], '--blocks: "25" is no integer from 1 to 24'),
            (["--threads", "0"], '--threads: "0" is no integer from 1 to 8'),
            (["--gm", "4X"], '--gm: "4X" is no size'), (["--gm", "64G"], '--gm: "64G" is no size'),
            (["-p", "a6sim"], '--platform: "a6sim" is none of a2a3sim, a5sim'),
            (["--runtime", "fast"], '--runtime: "fast" is none of tensormap_and_ringbuffer'),
            (["--device", "disk"], '--device: "disk" is none of process, thread'),
            (["--build", "later"], '--build: "later" is none of concurrent, sequential'),
            (["--rounds", "-1"], '--rounds: "-1" is no integer'), (["--timeout", "soon"], '--timeout: "soon" is no number of seconds'),
            (["another"], '"another" is not expected; one scene is run at a time'),
            (["--dump-tensor", "stats"], '"stats" is not expected; a level is written --dump-tensor=stats')):
        check_in("usage", says, run(directory, *arguments, code=2)[1])


def test_usage_of_dumps():
    directory = make("adder")
    tensor, nothing = ["--dump-tensor"], "means nothing without --dump-tensor"
    where = root / "usage"
    where.mkdir()
    for arguments, says in (
            (["--dump-tensor=all"], '--dump-tensor: "all" is none of full, partial, hybrid, stats'),
            (["--dump-tensor="], '--dump-tensor: "" is none of full'),
            (["--dump-filter", "kernel=add"], "--dump-filter " + nothing),
            (["--dump-filter", "kernel=add", "--dump-args"], "--dump-filter " + nothing),
            (["--dump-stats"], "--dump-stats " + nothing),
            (["--no-dedup", "--dump-args"], "--no-dedup " + nothing),
            (["--dump-max-tensor", "1K"], "--dump-max-tensor " + nothing),
            (["-o", "here"], "--output means nothing without --dump-tensor or --dump-args"),
            (["--dump-arena", "1M"], "--dump-arena means nothing without --dump-tensor or --dump-args"),
            (["--dump-buffers", "4"], "--dump-buffers means nothing without"),
            (["--dump-stall-timeout", "4"], "--dump-stall-timeout means nothing without"),
            (tensor + ["-o", ""], "--output: an empty name"),
            (tensor + ["--dump-arena", "63K"], '--dump-arena: "63K" is no size from 65536 to 4294967296 bytes'),
            (tensor + ["--dump-arena", "5G"], '--dump-arena: "5G" is no size'),
            (tensor + ["--dump-buffers", "1"], '--dump-buffers: "1" is no integer from 2 to 64'),
            (tensor + ["--dump-buffers", "65"], '--dump-buffers: "65" is no integer from 2 to 64'),
            (tensor + ["--dump-max-tensor", "0"], '--dump-max-tensor: "0" is no size from 1 to'),
            (tensor + ["--dump-stall-timeout", "0"], '--dump-stall-timeout: "0" is no number of seconds'),
            (tensor + ["--dump-filter", "task=1"] * 33, "--dump-filter: more than 32 filters"),
            (tensor + ["--dump-filter", "kernl=add"], 'dump filter "kernl=add": "kernl" is none of the keys kernel, func'),
            (tensor + ["--dump-filter", "role=in", "--dump-filter", "kernel=ad"],
             'dump filter "kernel=ad": kernel "ad" matches no kernel; registered are (func and name) 0 add')):
        out, err = run(directory, *arguments, code=2, cwd=where)
        check_in("usage of dumps", says, err)
        check("usage of dumps: nothing ran", out, "")
    check("usage of dumps: nothing was made", list(where.iterdir()), [])
    (where / "file").write_text("")
    _, err = run(directory, *tensor, "-o", "file/below", code=2, cwd=where)
    check_in("no directory", "making the directory file for a dump: Not a directory", err)


if __name__ == "__main__":
    sys.exit(run_tests(test_broken_scenes, test_usage, test_usage_of_dumps))
