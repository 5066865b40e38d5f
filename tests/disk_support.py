"""A disk that fails or is slow for programs that are started with it (dump_disk.c)."""
import os
import pathlib
import subprocess


def build_disk(directory):
    """The library for LD_PRELOAD. Programs with sanitizers cannot use it: theirs must be loaded first."""
    library = directory / "dump_disk.so"
    source = pathlib.Path(__file__).resolve().parent / "dump_disk.c"
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return library
