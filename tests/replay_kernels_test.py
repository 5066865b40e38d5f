#!/usr/bin/python3
"""glassbox replay with other kernels, and whose code it runs: a replaced kernel, and code inside a dump.

usage: replay_kernels_test.py GLASSBOX EXAMPLES
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

from command_support import ENVIRONMENT, check, check_in, glassbox
from replay_support import (BODIES, ELEMENTS, KERNEL, make_scene, manifest, record, refuse, replay, replay_text, root,
                            run_parts, words)

# --- another kernel ---


def check_swap():
    wrong = dict(BODIES, twice="for (int i = 0; i < n; ++i) y[i] = i == 9 || i == 20 ? 2 * x[i] + i : 2 * x[i];")
    reference = {"twice": {"reference": "reference/twice.c", "rtol": 1e-3, "atol": 1e-7}}
    scene = make_scene("swap", ["twice", "half"], wrong, **reference)
    dump = record(scene, "swap", "--no-dedup")
    x, y = words(dump, manifest(dump), 0)
    fixed = root / "right.c"
    fixed.write_text(KERNEL % BODIES["twice"])
    document = replay(dump, 0, "--kernel", fixed)
    (output,) = document["outputs"]
    check("fixed: judgement", [document[key] for key in ("judgement", "wrong", "rtol", "atol")], ["fixed", 0, 1e-3, 1e-7])
    check("fixed: changed", (output["mismatches"], output["first_bad"], output["max_abs"]), (2, [9], float(np.abs(y.astype(float) - 2 * x.astype(float)).max())))
    shown = [(e["arg_index"], e["index"], *(np.float32(e[key]) for key in ("old", "new", "expected"))) for e in document["elements"]]
    check("fixed: elements, the worst first", shown, [(1, [i], y[i], 2 * x[i], 2 * x[i]) for i in (20, 9)])
    text = replay_text(dump, 0, "--kernel", fixed)
    check("fixed: first line", text.split("\n")[0],
          f"task 0, kernel twice with {fixed}: fixed: right for its inputs according to the reference (rtol 0.001, atol 1e-07)")
    check_in("by name", "fixed: right", replay_text(dump, 0, "--kernel", f"twice={fixed}"))
    same = replay(dump, 0, "--kernel", scene / "twice.c", code=1)
    check("the old one: judgement", (same["judgement"], same["wrong"], same["outputs"][0]["mismatches"]), ("still_wrong", 2, 0))
    check("the old one: elements", [(e["index"], np.float32(e["expected"])) for e in same["elements"]], [([i], 2 * x[i]) for i in (20, 9)])
    half = replay(dump, 1, "--kernel", fixed, code=1)
    check("no reference: judgement", (half["judgement"], half["outputs"][0]["mismatches"]), ("not_judged", ELEMENTS))
    check_in("no reference", "half has no reference", half["judgement_reason"])
    plain = record(make_scene("plain", ["twice"]), "plain")
    check("no reference, no change", replay(plain, 0, "--kernel", fixed)["judgement"], "not_judged")
    check("no reference, not all written", replay(dump, 1, "--kernel", scene / "half.c", code=1)["judgement"], "not_judged")
    check_unknown(scene, fixed)
    nothing = root / "nothing.c"
    nothing.write_text(KERNEL % BODIES["half"].replace("3 *", "2 *"))
    document = replay(dump, 0, "--kernel", nothing, code=1)
    check("half is written: judgement", (document["judgement"], document["wrong"], document["outputs"][0]["not_written"]),
          ("still_wrong", ELEMENTS // 2, ELEMENTS // 2))
    check("half is written: elements", [(e["index"], e["new"], np.float32(e["expected"])) for e in document["elements"]],
          [([i], None, 2 * x[i]) for i in range(1, 21, 2)])
    text = replay_text(dump, 0, "--kernel", nothing, code=1).split("\n")
    check_in("half is written: first line", f": still wrong: {ELEMENTS // 2} elements do not match the reference (rtol 0.001, atol 1e-07)", text[0])
    check("half is written: rows", [(line.split()[2], "not written" in line) for line in text[4:14]], [(f"[{i}]", True) for i in range(1, 21, 2)])
    check_swap_files(dump, scene)
    shutil.rmtree(scene)
    gone = replay(dump, 0, "--kernel", root / "made.so", code=1)
    check("scene gone: judgement", gone["judgement"], "not_judged")
    check("scene gone: why", gone["judgement_reason"], f"the scene of the dump, {scene}, no longer exists")


def check_unknown(scene, fixed):
    """Nothing is known about the old kernel if the dump does not have its outputs."""
    dump = record(scene, "unknown", "--dump-tensor=hybrid", "--dump-filter", "role=input")
    for kernel, judgement, wrong in ((fixed, "right", 0), (scene / "twice.c", "wrong", 2)):
        document = replay(dump, 0, "--kernel", kernel, code=int(wrong > 0))
        check(f"unknown: {judgement}", [document[key] for key in ("judgement", "wrong")], [judgement, wrong])


def check_poison_expected():
    """A reference may compute the bits of a poison: they are still the expected value."""
    one = "for (int i = 0; i < n; ++i) y[i] = x[i];"
    scene = make_scene("poison", ["twice"], {"twice": one}, twice={"reference": "reference/twice.c"})
    (scene / "reference" / "twice.c").write_text(KERNEL % (one + "\n    *(uint32_t *)&y[7] = 0x5a5a5a5au;"))
    dump = record(scene, "poison")
    document = replay(dump, 0, "--kernel", scene / "twice.c", code=1)
    check("poison: elements", [(e["index"], np.float32(e["expected"])) for e in document["elements"]], [([7], np.uint32(0x5a5a5a5a).view(np.float32))])


def check_swap_files(dump, scene):
    bad = root / "bad.c"
    bad.write_text("int kernel_entry(void) { return nothing_of_this_name; }\n")
    done = glassbox("replay", dump, "--task", 0, "--kernel", bad)
    check("bad kernel: exit code", done.returncode, 2)
    check_in("bad kernel: what the compiler said", "nothing_of_this_name", done.stderr)
    check_in("no file", "No such file", refuse(dump, 0, "--kernel", root / "none.c"))
    bad.write_text("int entry;\n")
    sentence = refuse(dump, 0, "--kernel", bad)
    check("no entry", (sentence.startswith(f"glassbox replay: --kernel {bad}: "), sentence.endswith("it has no kernel_entry\n")), (True, True))
    check_in("no kernel", "NAME=FILE", refuse(dump, 0, "--kernel", f"other={scene / 'twice.c'}"))
    made = root / "made.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{header_folder()}", "-o", made, scene / "reference" / "twice.c"], check=True)
    check("a shared object", replay(dump, 0, "--kernel", made)["judgement"], "fixed")
    for second in (made, f"twice={made}"):
        check_in("twice the same kernel", "replace the same kernel", refuse(dump, 0, "--kernel", scene / "twice.c", "--kernel", second))
    check_foreign_scene(dump, scene, made)


def check_foreign_scene(dump, scene, made):
    """References are code too: they do not run if everybody can write them; a group may."""
    for path in (scene / "scene.json", scene, scene / "reference", scene / "reference" / "twice.c"):
        mode = path.stat().st_mode & 0o777
        path.chmod(mode | 0o002)
        document = replay(dump, 0, "--kernel", made, code=1)
        check(f"everybody can write {path.name}: judgement", document["judgement"], "not_judged")
        check_in(f"everybody can write {path.name}", "give --trust", document["judgement_reason"])
        path.chmod(mode | 0o020)
        check(f"a group can write {path.name}", replay(dump, 0, "--kernel", made)["judgement"], "fixed")
        path.chmod(mode)
    (scene / "reference").chmod(0o777)
    check("others' scene, trusted", replay(dump, 0, "--kernel", made, "--trust")["judgement"], "fixed")
    (scene / "reference").chmod(0o755)
    check_linked_scene(dump, scene, made)


def check_linked_scene(dump, scene, made):
    """A scene.json in a directory that everybody can write, linked to this user's: its references do not run."""
    folder = root / "linked"
    shutil.copytree(scene / "reference", folder / "reference")
    (folder / "scene.json").symlink_to(scene / "scene.json")
    folder.chmod(0o777)
    copy = root / "of-linked"
    shutil.copytree(dump, copy)
    run = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps({**run, "scene_path": str(folder)}))
    check("linked scene", replay(copy, 0, "--kernel", made, code=1)["judgement"], "not_judged")
    folder.chmod(0o755)
    check("linked scene of this user", replay(copy, 0, "--kernel", made)["judgement"], "fixed")


def header_folder():
    """The folder in the cache that has glassbox/kernel.h."""
    cache = pathlib.Path(ENVIRONMENT.get("GLASSBOX_CACHE") or pathlib.Path.home() / ".cache" / "glassbox")
    return next((cache / "include").iterdir())


# --- code of a dump ---


def cache(name):
    return {**ENVIRONMENT, "GLASSBOX_CACHE": str(root / name)}


def check_trust():
    """Kept kernels run if this user owns the same bytes, or with --trust; else nothing runs."""
    own, other = cache("cache"), cache("other-cache")
    marked = dict(BODIES, twice=f'FILE *f = fopen("{root}/ran", "a"); if (f) fclose(f); ' + BODIES["twice"],
                  half=BODIES["half"])
    scene = make_scene("trust", ["twice", "half"], marked)
    source = scene / "twice.c"
    source.write_text("#include <stdio.h>\n" + source.read_text())
    dump = record(scene, "trust", environment=own)
    ran = root / "ran"
    check("the run ran it", ran.exists(), True)

    def attempt(what, is_run, dump=dump, *options, environment=own):
        ran.unlink(missing_ok=True)
        if is_run:
            check(f"{what}: verdict", replay(dump, 0, *options, environment=environment)["verdict"], "bit_exact")
            text = ""
        else:
            text = refuse(dump, 0, *options, environment=environment)
        check(f"{what}: whether it ran", ran.exists(), is_run)
        return text

    attempt("in the cache", True)
    source.rename(scene / "away.c")
    for path in (root / "cache" / "kernels").iterdir():
        path.chmod(0o666)  # nobody else gets there
    attempt("in the cache, source gone", True)
    (root / "cache" / "kernels").chmod(0o777)
    attempt("in a cache of everybody's, source gone", False)
    (root / "cache" / "kernels").chmod(0o700)
    (scene / "away.c").rename(source)
    shutil.rmtree(root / "cache" / "kernels")
    scene.chmod(0o777)
    check_in("a directory of everybody's", "its source is writable by everyone or another user", attempt("cache lost, source of everybody's", False))
    scene.chmod(0o755)
    attempt("cache lost, source there", True)
    check_lost(dump, attempt)
    shutil.rmtree(root / "cache" / "kernels")
    copy = root / "elsewhere" / "dump"
    shutil.copytree(dump, copy)
    text = attempt("another cache", False, copy, environment=other)
    for part in ("replaying kernel twice would run ", str(copy / "kernels"), "code that came with the dump", "--trust"):
        check_in("another cache", part, text)
    attempt("another cache, trusted", True, copy, "--trust", environment=other)
    source.write_text(source.read_text().replace("2 * x", "4 * x"))
    check_in("source changed", "no longer compiles to the same code: source, compiler or cache path changed", attempt("source changed", False))
    document = replay(dump, "all", code=2, environment=own)
    check("source changed: all", [t["verdict"] for t in document["tasks"]], ["not_replayed", "equal_where_written"])
    check_in("source changed: all, why", "replaying kernel twice would run ", document["tasks"][0]["reason"])
    source.unlink()
    check_in("source gone", "no longer exists", attempt("source gone", False))
    attempt("source gone, trusted", True, dump, "--trust")
    check_hostile(dump, attempt)


def check_lost(dump, attempt):
    """The copy of a kernel is gone: its source compiles to the same code, or nothing runs."""
    copy = root / "lost"
    shutil.copytree(dump, copy)
    (kernel,) = (k for k in json.loads((copy / "run.json").read_text())["kernels"] if k["name"] == "twice")
    (copy / kernel["object"]).unlink()
    attempt("copy lost", True, copy)
    source = pathlib.Path(kernel["origin"])
    text = source.read_text()
    source.write_text(text.replace("2 * x", "4 * x"))
    for options in ((), ("--trust",)):
        refusal = attempt(f"copy lost, source changed {options}", False, copy, *options)
        for part in (kernel["object"], "no longer compiles to the same code: source, compiler or cache path changed", "--kernel twice=FILE"):
            check_in("copy lost, source changed", part, refusal)
    source.write_text(text)


def with_run_json(dump, name, change):
    copy = root / name
    shutil.copytree(dump, copy)
    document = json.loads((copy / "run.json").read_text())
    change(document["kernels"][0], copy)
    (copy / "run.json").write_text(json.dumps(document))
    return copy


def check_hostile(dump, attempt):
    """run.json is not trusted."""
    def inside(kernel, copy):
        target = copy / "kernels" / "own.c"
        target.write_text(KERNEL % BODIES["twice"])
        kernel["origin"] = str(target)

    def flags(kernel, copy):
        target = root / "harmless.c"
        target.write_text(KERNEL % BODIES["twice"])
        kernel |= {"origin": str(target), "compile_flags": f"-fplugin={copy}/kernels/evil.so"}

    def replaced(kernel, copy):
        shutil.copy(copy / json.loads((copy / "run.json").read_text())["kernels"][1]["object"], copy / kernel["object"])

    def relative(kernel, copy):
        target = root / "relative.c"
        target.write_text(KERNEL % BODIES["twice"])
        kernel["origin"] = os.path.relpath(target)

    def set_to(**fields):
        return lambda kernel, copy: kernel.update(fields)

    for name, change, parts, is_final in (
            ("origin-inside", inside, ["its source is inside the dump"], False),
            ("flags", flags, ["compiler flags that could do more than compile"], False),
            ("replaced", replaced, ["is not the shared object that ran"], True),
            ("parent", set_to(object="../trust/kernels/x.so"), ["object", "inside the dump"], True),
            ("absolute", set_to(object="/lib/x86_64-linux-gnu/libm.so.6"), ["object", "inside the dump"], True),
            ("no-hash", set_to(object_hash=None), ["object_hash"], True),
            ("no-file", set_to(object="kernels/none.so"), ["none.so"], True),
            ("number", set_to(name=7), ["name"], True),
            ("relative", relative, ["is not an absolute path"], False),
            ("controls", set_to(name="a\x1b[31m\nb", object="kernels/\x1b[31m\n.so"), ["a\\x1b[31m\\x0ab", "\\x1b[31m\\x0a.so"], True)):
        copy = with_run_json(dump, name, change)
        text = attempt(name, False, copy)
        for part in parts:
            check_in(name, part, text)
        if is_final:  # no --trust helps
            attempt(f"{name}, trusted", False, copy, "--trust")
    copy = with_run_json(dump, "kernel-flags", lambda kernel, copy: (flags(kernel, copy), kernel.update(name="a\x1b[31m\nb")))
    fixed = root / "right.c"
    check_in("flags of the dump", "came with the dump and could do more than compile", refuse(copy, 0, "--kernel", fixed))
    flagged = record(make_scene("flagged", ["twice"], twice={"compile_flags": "-DUNUSED=1"}), "flagged")
    check("flags of the scene", replay(flagged, 0, "--kernel", fixed)["outputs"][0]["bit_exact"], True)
    copy = with_run_json(flagged, "flagged-other", set_to(compile_flags="-DUNUSED=2"))
    check_in("flags that the scene does not have", "-DUNUSED=2", refuse(copy, 0, "--kernel", fixed))
    check("flags that are trusted", replay(copy, 0, "--kernel", fixed, "--trust")["outputs"][0]["bit_exact"], True)
    copy = with_run_json(dump, "bare", lambda kernel, copy: None)
    (copy / "run.json").unlink()
    check_in("no run.json", "--kernel twice=FILE", attempt("no run.json", False, copy, "--trust"))
    check("no run.json, a kernel", replay(copy, 0, "--kernel", fixed)["outputs"][0]["bit_exact"], True)


if __name__ == "__main__":
    sys.exit(run_parts(check_swap, check_poison_expected, check_trust))
