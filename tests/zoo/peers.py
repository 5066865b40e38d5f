"""What two sanitizers of accelerators say of each class of bug, by their own documentation.

`found`: a check that is on by default covers the class. `needs a run of its own`: a check covers it that has to be asked for alone, in
another run. `not found`: none of the checks that the documentation lists covers it. The reasons, in our words:

NVIDIA, Compute Sanitizer user guide (docs.nvidia.com/compute-sanitizer/ComputeSanitizer), "Memcheck Tool", "Racecheck Tool", "Initcheck
Tool", "Synccheck Tool": memcheck (the default) sees accesses outside of allocations, misaligned accesses and exceptions of the hardware;
racecheck hazards in shared memory, so none in global memory; initcheck reads of global memory that nothing has written; synccheck wrong use of
barriers and other primitives of synchronisation.

Ascend, msSanitizer user guide (hiascend.com, CANN 8.5: atlasopdev_16_0039 "Overview", _0128 "Uninitialization Check", _0181
"Synchronization Check"; MindStudio 8.0.RC1, in Chinese: _0042 "Memory Check"; MindStudio 7.0.0: _0043 "Contention Check"): it checks one
operator at a time; memcheck (the default) sees accesses to memory that is not allocated, cores that write the same global memory, and
unaligned transfers; racecheck hazards within and between cores of the operator, in global memory, too; initcheck reads of memory that was
not written, stack included; synccheck a SetFlag without its WaitFlag (a WaitFlag without its SetFlag hangs, and needs no tool).
"""

FOUND, NOT_FOUND = "found (memcheck)", "not found"
INITCHECK, RACECHECK = "needs a run of its own (initcheck)", "needs a run of its own (racecheck)"
OUTSIDE = "found (memcheck) if it leaves the allocation"

ANSWERS = {
    "overrun behind": (OUTSIDE, OUTSIDE),
    "overrun before": (OUTSIDE, OUTSIDE),
    "overrun into the next tile": (OUTSIDE, OUTSIDE),
    "overrun by stride": (OUTSIDE, OUTSIDE),
    "reading past an input": (OUTSIDE, OUTSIDE),
    "reading before an input": (OUTSIDE, OUTSIDE),
    "tail off by one": (INITCHECK + " if a kernel reads it", NOT_FOUND),
    "output not fully written": (INITCHECK + " if a kernel reads it", NOT_FOUND),
    "uninitialised local": (NOT_FOUND, INITCHECK),
    "uninitialised output": (INITCHECK, INITCHECK),
    "uninitialised temporary": (INITCHECK, INITCHECK),
    "stack overrun": (OUTSIDE, NOT_FOUND),
    "misaligned access": (FOUND, FOUND + " in transfers"),
    "undefined behaviour": (NOT_FOUND, NOT_FOUND),
    "crash": (FOUND, FOUND),
    "endless loop": (NOT_FOUND, NOT_FOUND),
    "race between blocks": (NOT_FOUND, FOUND + " if both write, else " + RACECHECK),
    "race between subtasks": (NOT_FOUND, RACECHECK),
    "race between tasks": (NOT_FOUND, NOT_FOUND),
    "flag never set": (NOT_FOUND, NOT_FOUND),
    "wrong flag value": (NOT_FOUND, NOT_FOUND),
    "stale flag": (NOT_FOUND, NOT_FOUND),
    "missing edge": (NOT_FOUND, NOT_FOUND),
    "wrong edge": (NOT_FOUND, NOT_FOUND),
    "double writer": (NOT_FOUND, NOT_FOUND),
    "missing task": (NOT_FOUND, NOT_FOUND),
    "task done twice": (NOT_FOUND, NOT_FOUND),
    "missing copy": (INITCHECK, INITCHECK),
    "aliasing views": (NOT_FOUND, NOT_FOUND),
    "stale pointer": (NOT_FOUND, NOT_FOUND),
    "wrong view": (NOT_FOUND, NOT_FOUND),
    "wrong scalar": (NOT_FOUND, NOT_FOUND),
    "wrong role": (NOT_FOUND, NOT_FOUND),
    "wrong func id": (NOT_FOUND, NOT_FOUND),
    "wrong logic": (NOT_FOUND, NOT_FOUND),
    "dtype mix-up": (NOT_FOUND, NOT_FOUND),
    "denormals flushed": (NOT_FOUND, NOT_FOUND),
    "NaN once in thousands": (NOT_FOUND, NOT_FOUND),
}
