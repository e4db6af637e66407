"""Profiler: selects the part of a program that `python -m kymo -p` records."""
from __future__ import annotations

from kymo import _auto

TYPE_CHECKING = False  # as in _query.py
if TYPE_CHECKING:
    from types import TracebackType

# One entry for each enable() without its disable(), of all Profilers; a list, because append and pop are atomic.
_open: list[None] = []


class Profiler:
    """Records the Python calls between enable() and disable(), under `python -m kymo -p program.py`.

    >>> import kymo
    >>> with kymo.Profiler():
    ...     sum(range(10))
    45
    >>> profiler = kymo.Profiler()
    >>> profiler.enable()
    >>> profiler.disable()

    Profilers may be nested and repeated, with one object or several: the first enable() starts recording, and the
    last matching disable() stops it. An extra disable() does nothing. Without -p, `python -m kymo` records every call,
    and a Profiler has no effect; the same holds in a program that is not run by `python -m kymo`.
    """

    __slots__ = ("__weakref__",)

    def enable(self) -> None:
        """Starts recording the calls that begin from now on, in all threads."""
        if _auto.mode == "partial":
            _open.append(None)
            _auto.begin()

    def disable(self) -> None:
        """Undoes one enable()."""
        if _open:
            _open.pop()
            _auto.end()

    def __enter__(self) -> Profiler:
        self.enable()
        return self

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        self.disable()
