"""Profiler: which part of a program is recorded, under `python -m kymo -p`."""
from __future__ import annotations

from kymo import _auto

TYPE_CHECKING = False  # as in _query.py
if TYPE_CHECKING:
    from types import TracebackType

# One entry for each enable() that has not met its disable(), of all Profilers; a list, since its ends are atomic.
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

    It may be nested and repeated, in one object or in several: the first enable() begins, and the last disable() that
    belongs to one ends. One disable() too many does nothing. Under `python -m kymo` without -p every call is recorded
    anyway, and it changes nothing; in a program that is run otherwise, it does nothing at all.
    """

    __slots__ = ("__weakref__",)

    def enable(self) -> None:
        """Begins recording calls, in all threads: those that begin from now on."""
        if _auto.mode == "partial":
            _open.append(None)
            _auto.begin()

    def disable(self) -> None:
        """Ends what one enable() began."""
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
