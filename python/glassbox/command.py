"""Runs scenes with the glassbox command and opens their dumps."""
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

    You can give all options of `glassbox run`, with underscores: `threads=2`, `dump_stats=True`. Without `output` the dump
    lies in a temporary directory that is removed with the dump object. Outputs that differ from the golden raise
    RunError, unless `check` is false; any other failure raises it always.
    """
    dumps = run_all(scene, case=case, platform=platform, runtime=runtime, dump_tensor=dump_tensor, dump_args=dump_args,
                    dump_filter=dump_filter, output=output, command=command, check=check, **options)
    if len(dumps) != 1:
        raise RunError(f"running {scene}: it made {len(dumps)} dumps, but run returns only one; use glassbox.run_all")
    return dumps[0]


def run_all(scene: _Path, *, output: _Path | None = None, command: _Path | None = None, check: bool = True,
            **options: Any) -> list[Dump]:
    """Like run, for several cases (`case=["a", "b"]`, `case="all"`) or `rounds=3`; returns one dump each, in order."""
    options.setdefault("dump_tensor", True)
    if not options["dump_tensor"] and not options.get("dump_args"):
        raise RunError(f"running {scene}: there is no dump to return; set dump_tensor or dump_args")
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
    """`command`, else $GLASSBOX, else glassbox on the PATH, else build/glassbox of this source tree."""
    given = os.fspath(command) if command is not None else os.environ.get("GLASSBOX")
    if given:
        found = shutil.which(given)
        if found is None:
            raise RunError(f"running glassbox: {given} is not a program; change "
                           f"{'command=' if command is not None else 'GLASSBOX'}")
        return found
    built = pathlib.Path(__file__).resolve().parents[2] / "build" / "glassbox"
    found = shutil.which("glassbox") or shutil.which(str(built))
    if found is None:
        raise RunError(f"running glassbox: it is neither on the PATH nor at {built}; give command= or set GLASSBOX")
    return found


def _option_arguments(options: dict[str, Any]) -> list[str]:
    """True gives a flag, a list repeats the option for each member, False and None omit it."""
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
            # If the run failed, its own error says more.
            if is_needed:
                raise
    return dumps


def _check(scene: _Path, done: subprocess.CompletedProcess[str], result: Any, dumps: list[Dump], check: bool) -> None:
    if done.returncode == 0 and dumps:
        return
    if done.returncode == 1 and dumps and not check and not _has_unmatched_filter(result):
        return
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    sentences = [line for line in lines if line.startswith("glassbox")]
    sentence = (sentences or lines or _wrong_outputs(result) or ["the command gave no reason"])[-1]
    message = f"running {scene}: {sentence} (exit code {done.returncode})"
    raise RunError(message, done.returncode, result, dumps[0] if len(dumps) == 1 else dumps or None, done.stderr)


def _has_unmatched_filter(result: Any) -> bool:
    return any((case.get("dump_totals") or {}).get("unmatched_filters") for case in result.get("cases") or [])


def _wrong_outputs(result: Any) -> list[str]:
    """Outputs that differ from the golden: only the JSON document has them."""
    wrong = []
    for case in (result or {}).get("cases") or []:
        for output in case.get("outputs") or []:
            if output.get("ok") is False:
                wrong.append(f"case {case.get('name')}: {output.get('mismatches')} elements of output {output.get('name')} "
                             f"differ from the golden, the first at {output.get('first_bad')}; the largest difference is "
                             f"{output.get('max_abs')}")
    return ["; ".join(wrong)] if wrong else []


def _remove_with(temporary: str | None, dumps: list[Dump]) -> None:
    """Removes a temporary directory with the last of its dumps. Their arrays stay valid: they are mapped."""
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
