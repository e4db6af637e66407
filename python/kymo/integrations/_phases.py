"""Zones that begin in one call of a trainer and end in another, and its metrics as counters."""
from __future__ import annotations

from typing import Any

from kymo import _auto
from kymo._kymo import Region, region


def auto() -> Any:
    """The module that borrows methods of trainers; loading it borrows nothing."""
    return _auto.load("_trainers_auto", folder="_inject/")


class Phases:
    """The open zones of one callback. Nothing while methods of the package are borrowed: the phases are zones already."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._open: dict[str, Region] = {}

    def is_mine(self) -> bool:
        return not auto().has(self._package)

    def begin(self, name: str) -> None:
        self.end(name)  # a trainer that was left by an exception has not ended it
        if self.is_mine():
            self._open[name] = region(name).__enter__()

    def begin_once(self, name: str) -> None:
        if name not in self._open:
            self.begin(name)

    def end(self, name: str) -> None:
        zone = self._open.pop(name, None)
        if zone is not None:
            zone.__exit__(None, None, None)

    def end_all(self) -> None:
        for name in list(self._open):
            self.end(name)

    def count(self, metrics: Any, step: Any = None) -> None:
        """The numbers of a dict as counters. What is no number is left out; this never raises."""
        if self.is_mine():
            auto().see(auto().pace, self, step)
            auto().see(auto().count, metrics)
