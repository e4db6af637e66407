"""A flight recorder for AI workloads: mark what your program does, and ask about it in SQL.

>>> import kymo
>>> with kymo.region("load"):
...     kymo.record("batch_size", 32)

Nothing is recorded until `kymo run -- python program.py`, KYMO=on in the environment, or enable(). Until then a
call costs next to nothing and does nothing. What cannot be recorded is dropped and counted (`FROM kymo.streams`);
it never raises and never changes what your program does. Only wrong arguments raise, recorded or not.

    region, phase, step, mark, record      what happened, and when
    Profiler                               which calls `python -m kymo -p` records
    table                                  rows of your own
    enable, disable, enabled, directory    this process's recording
    enable_torch_profiling                 every module of PyTorch, forward and backward
    snapshot, query                        keep it, ask it

Threads, child processes and recursion need no care. A process that forks while other threads run records on in
both; only what such threads had open stays open in the parent alone.
"""
try:
    from kymo._kymo import __version__
except ModuleNotFoundError as error:
    if error.name != "kymo._kymo":
        raise
    from kymo._absent import sentence
    raise ImportError(sentence(), name=error.name) from None
from kymo._kymo import (
    Error,
    Function,
    Region,
    Table,
    current_step,
    directory,
    disable,
    enable,
    enabled,
    mark,
    phase,
    record,
    region,
    signpost,
    snapshot,
    step,
    step_end,
    thread_name,
)
from kymo._profiler import Profiler
from kymo._query import Result, query
from kymo._table import now, table, text
from kymo._torch_switch import disable_torch_profiling, enable_torch_profiling

__all__ = [
    "Error",
    "Function",
    "Profiler",
    "Region",
    "Result",
    "Table",
    "__version__",
    "current_step",
    "directory",
    "disable",
    "disable_torch_profiling",
    "enable",
    "enable_torch_profiling",
    "enabled",
    "mark",
    "now",
    "phase",
    "query",
    "record",
    "region",
    "signpost",
    "snapshot",
    "step",
    "step_end",
    "table",
    "text",
    "thread_name",
]
