"""The window of `python -m kymo --skip N --take N` and `--from A --to B`: calls are recorded inside it alone.

Where such a window is asked for, kymo.step and the two names of marks are replaced by ones that look at it too; else
they are the C functions themselves.
"""
from __future__ import annotations

import os

from kymo import _auto, _kymo

TYPE_CHECKING = False  # as in _query.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any



class _Window:
    def __init__(self, begins: Callable[[Any], bool], ends: Callable[[Any], bool]) -> None:
        self.begins, self.ends, self.state = begins, ends, "before"

    def look(self, where: Any) -> None:
        """At each step or signpost, once it is recorded."""
        if self.state == "in" and self.ends(where):
            self.state = "after"
            _auto.end()
        elif self.state == "before" and self.begins(where):
            self.state = "in"
            _auto.begin()


def _steps(skip: int, take: int | None) -> dict[str, Callable[..., Any]]:
    window = _Window(lambda n: n > skip, lambda n: take is not None and n > skip + take)
    done = 0

    def step(name: str | None = None) -> None:
        nonlocal done
        _kymo.step(name)
        done += 1
        window.look(done)

    def step_end(name: str | None = None) -> None:
        _kymo.step_end(name)
        if take is not None and done >= skip + take:
            window.look(done + 1)

    return {"step": step, "step_end": step_end}


def _signposts(first: str | None, last: str | None) -> dict[str, Callable[..., Any]]:
    window = _Window(lambda name: name == first, lambda name: name == last)
    if first is None:
        window.look(None)

    def signpost(header: str, message: str | None = None) -> None:
        _kymo.signpost(header, message)
        window.look(header)

    def mark(name: str, text: str | None = None) -> None:
        _kymo.mark(name, text)
        window.look(name)

    return {"signpost": signpost, "mark": mark}


def functions() -> dict[str, Callable[..., Any]]:
    """What to put in place of kymo's own functions; nothing where no window is asked for."""
    wish = {name: os.environ.get("KYMO_" + name.upper()) for name in ("skip", "take", "from", "to")}
    made: dict[str, Callable[..., Any]] = {}
    if _auto.mode == "on" and (wish["skip"] or wish["take"]):
        made = _steps(int(wish["skip"] or 0), int(wish["take"]) if wish["take"] else None)
    elif _auto.mode == "on" and (wish["from"] or wish["to"]):
        made = _signposts(wish["from"], wish["to"])
    for name, function in made.items():
        function.__doc__ = getattr(_kymo, name).__doc__
    return made
