"""Runs scenes with the command, and opens the dumps that they leave."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import weakref
from typing import Any, Sequence

from .dump import Dump
from .errors import DumpError, RunError

_Path = str | os.PathLike[str]


def run(scene: _Path, case: str | None = None, platform: str | None = None, runtime: str | None = None,
        dump_tensor: bool | str = True, dump_args: bool = False, dump_filter: str | Sequence[str] | None = None,
        output: _Path | None = None, command: _Path | None = None, check: bool = True, **options: Any) -> Dump:
    """Runs one case of a scene and returns its dump; `dump.result` is the document that the command printed.

    All options of `glassbox run` can be given, with underscores: `threads=2`, `dump_stats=True`. Without `output` the dump
    lies in a temporary directory that is removed when the dump object goes. Outputs that are not as expected
    raise RunError, unless `check` is false; any other failure raises it always.
    """
    dumps = run_all(scene, case=case, platform=platform, runtime=runtime, dump_tensor=dump_tensor, dump_args=dump_args,
                    dump_filter=dump_filter, output=output, command=command, check=check, **options)
    if len(dumps) != 1:
        raise RunError(f"running {scene}: {len(dumps)} dumps were made, and run returns one; use glassbox.run_all")
    return dumps[0]


def run_all(scene: _Path, *, output: _Path | None = None, command: _Path | None = None, check: bool = True,
            **options: Any) -> list[Dump]:
    """Like run, with several cases (`case=["a", "b"]`, `case="all"`) or `rounds=3`: a dump for each, in their order."""
    options.setdefault("dump_tensor", True)
    if not options["dump_tensor"] and not options.get("dump_args"):
        raise RunError(f"running {scene}: with neither dump_tensor nor dump_args no dump to return")
    program = find_command(command)
    temporary = None if output is not None else tempfile.mkdtemp(prefix="glassbox-")
    where = pathlib.Path(temporary, "dump") if temporary else pathlib.Path(os.fspath(output or ""))
    dumps: list[Dump] = []
    try:
        arguments = [program, "run", os.fspath(scene), "--json", f"--output={where}", *_option_arguments(options)]
        done = subprocess.run(arguments, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        result = _parse(done.stdout)
        dumps += _open_dumps(result, is_needed=done.returncode in (0, 1))
        _check(scene, done, result, dumps, check)
    finally:
        _remove_with(temporary, dumps)
    return dumps


def find_command(command: _Path | None = None) -> str:
    """The one that is given, else $GLASSBOX, else glassbox of the PATH, else build/glassbox of this source tree."""
    given = os.fspath(command) if command is not None else os.environ.get("GLASSBOX")
    if given:
        found = shutil.which(given)
        if found is None:
            raise RunError(f"running glassbox: {given} is not a program; it was given as "
                           f"{'command=' if command is not None else 'GLASSBOX'}")
        return found
    built = pathlib.Path(__file__).resolve().parents[2] / "build" / "glassbox"
    found = shutil.which("glassbox") or shutil.which(str(built))
    if found is None:
        raise RunError(f"running glassbox: not found in PATH or at {built}; give command= or set GLASSBOX")
    return found


def _option_arguments(options: dict[str, Any]) -> list[str]:
    """True is a flag, a list the option once for each member, False and None nothing."""
    arguments = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                arguments.append(option)
            elif one is not None and one is not False:
                arguments.append(f"{option}={one}")
    return arguments


def _parse(text: str) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _open_dumps(result: dict[str, Any] | None, is_needed: bool) -> list[Dump]:
    dumps = []
    for case in (result or {}).get("cases") or []:
        try:
            if case.get("dump"):
                dumps.append(Dump(case["dump"]))
                dumps[-1].result = result
        except DumpError:
            # Why the run failed says more than what it left behind.
            if is_needed:
                raise
    return dumps


def _check(scene: _Path, done: subprocess.CompletedProcess[str], result: Any, dumps: list[Dump], check: bool) -> None:
    if done.returncode == 0 and dumps:
        return
    if done.returncode == 1 and dumps and not check and not _has_unmatched_filter(result):
        return
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("glassbox")]
    sentence = (told or lines or _wrong_outputs(result) or ["no reason was given"])[-1]
    message = f"running {scene}: {sentence} (exit code {done.returncode})"
    raise RunError(message, done.returncode, result, dumps[0] if len(dumps) == 1 else dumps or None, done.stderr)


def _has_unmatched_filter(result: Any) -> bool:
    return any((case.get("dump_totals") or {}).get("unmatched_filters") for case in result.get("cases") or [])


def _wrong_outputs(result: Any) -> list[str]:
    """Outputs that are not as expected: only the document of the command names them."""
    wrong = []
    for case in (result or {}).get("cases") or []:
        for output in case.get("outputs") or []:
            if output.get("ok") is False:
                wrong.append(f"case {case.get('name')}: {output.get('mismatches')} elements of output {output.get('name')} "
                             f"are not as expected, the first at {output.get('first_bad')}; largest difference "
                             f"{output.get('max_abs')}")
    return ["; ".join(wrong)] if wrong else []


def _remove_with(temporary: str | None, dumps: list[Dump]) -> None:
    """Removes a temporary directory when the last of its dumps has gone. Arrays of them stay valid: they are mapped."""
    if temporary is None:
        return
    if not dumps:
        shutil.rmtree(temporary, ignore_errors=True)
        return
    left = [len(dumps)]

    def release() -> None:
        left[0] -= 1
        if left[0] == 0:
            shutil.rmtree(temporary, ignore_errors=True)

    for dump in dumps:
        weakref.finalize(dump, release)
