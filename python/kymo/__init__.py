"""A flight recorder for AI workloads: mark regions of your program, and query the recording with SQL.

>>> import kymo
>>> with kymo.region("load"):
...     kymo.record("batch_size", 32)

Recording starts with `kymo run -- python program.py`, KYMO=on in the environment, or enable(). Until then calls do
nothing and cost almost nothing. Rows that cannot be recorded are dropped and counted (`FROM kymo.streams`). A failure
to record never raises and never changes the program. Only wrong arguments raise, whether recording is on or off.

    region, phase, step, mark, record      zones, steps, marks and values
    Profiler                               selects the calls that `python -m kymo -p` records
    table                                  tables of your own
    recording, start                       a part of this program into a file: with kymo.recording() as r
    enable, disable, enabled, directory    the recording of this process
    enable_torch_profiling                 every PyTorch module, forward and backward
    snapshot, query                        save the recording, query it

Threads, child processes and recursion work without preparation. After a fork both processes record; zones that other
threads had open stay open only in the parent.
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
from kymo._inside.recording import Recording, recording, start
from kymo._table import now, table, text
from kymo._torch_switch import disable_torch_profiling, enable_torch_profiling

__all__ = [
    "Error",
    "Function",
    "Profiler",
    "Recording",
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
    "recording",
    "region",
    "signpost",
    "snapshot",
    "start",
    "step",
    "step_end",
    "table",
    "text",
    "thread_name",
]


def load_ipython_extension(shell: object) -> None:
    """`%load_ext kymo` in a notebook: %kymo and %%kymo record a line or a cell."""
    from kymo._inside.jupyter import load

    load(shell)
