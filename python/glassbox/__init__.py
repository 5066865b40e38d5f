"""Reads dumps of glassbox, and runs scenes to make them. See docs/python.md."""
from .command import run, run_all
from .dump import Dump, open
from .errors import DumpError, Error, FilterError, NoHashing, NoPayload, RunError
from .records import Record, Records, Stats
from .tasks import Arguments, Task, Tasks

__all__ = ["Arguments", "Dump", "DumpError", "Error", "FilterError", "NoHashing", "NoPayload", "Record", "Records",
           "RunError", "Stats", "Task", "Tasks", "open", "run", "run_all"]
__version__ = "0.1.0"
