"""%load_ext kymo: %kymo and %%kymo record a line or a cell, and show what took the time."""
from __future__ import annotations

import argparse
import html
import os
import shlex
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from IPython.core.error import UsageError  # type: ignore[import-not-found,unused-ignore]
from IPython.core.magic import Magics, line_cell_magic, magics_class  # type: ignore[import-not-found,unused-ignore]

from kymo._kymo import Error
from kymo._inside import rich
from kymo._inside.recording import Recording, recording

PAGE_HEIGHT = 560  # pixels


class _Parser(argparse.ArgumentParser):
    """Wrong words are an error of the cell, not the end of the kernel."""

    def error(self, message: str) -> Any:
        raise UsageError(f"%kymo: {message}; see %kymo?")

    def exit(self, status: int = 0, message: str | None = None) -> Any:
        raise UsageError(message or self.format_help())


def _parser() -> _Parser:
    parser = _Parser(prog="%%kymo", add_help=False, description="Records a line or a cell.")
    parser.add_argument("--python", action="store_true", help="record every call of a Python function")
    parser.add_argument("--memory", action="store_true", help="record which lines allocate")
    parser.add_argument("--no-native", action="store_true", help="do not sample native stacks")
    parser.add_argument("--no-page", action="store_true", help="show the findings without the page")
    parser.add_argument("--name", help="variable that gets the Recording; `before` is the last one")
    parser.add_argument("--compare", metavar="NAME", help="compare with the Recording of this variable")
    parser.add_argument("-o", "--output", metavar="FILE", help="file of the recording")
    return parser


class Shown:
    """A recording as a notebook shows it: findings, the steps as a chart and the page; as text: the findings."""

    def __init__(self, record: Recording, with_page: bool, other: Recording | None) -> None:
        self.recording = record
        # Each is a process of its own: together they take as long as the longest.
        with ThreadPoolExecutor(4) as pool:
            found = pool.submit(record.findings)
            steps = pool.submit(lambda: [row["duration_ns"] for row in record.query(rich.CHART)])
            page = pool.submit(_page_of, record) if with_page else None
            difference = pool.submit(other.compare, record) if other else None
        self._found, self._steps = found.result(), steps.result()
        self._page = page.result() if page else None
        self._difference = difference.result() if difference else None

    def __repr__(self) -> str:
        parts = [self._difference] if self._difference else []
        return "\n".join([*parts, rich.findings_text(self.recording, self._found)])

    def _repr_html_(self) -> str:
        parts = [rich.findings(self.recording, self._found), rich.chart(self._steps)]
        if self._difference:
            parts.append(f"<pre>{html.escape(self._difference)}</pre>")
        if self._page:
            # Without scripts of the notebook's origin: names in a recording may be hostile.
            parts.append(f'<iframe sandbox="allow-scripts" style="width:100%;height:{PAGE_HEIGHT}px;border:1px solid #8884" '
                         f'srcdoc="{html.escape(self._page)}"></iframe>')
        return "".join(parts)


def _page_of(record: Recording) -> str:
    path = record.html()
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    finally:
        os.unlink(path)


@magics_class
class KymoMagics(Magics):  # type: ignore[misc,unused-ignore]
    """The magics %kymo and %%kymo."""

    @line_cell_magic  # type: ignore[untyped-decorator,unused-ignore]
    def kymo(self, line: str, cell: str | None = None) -> None:
        """Records a line (%kymo train()) or a cell (%%kymo) and shows findings, steps and the page.

        %%kymo [--python] [--memory] [--no-native] [--no-page] [--name NAME] [--compare NAME] [-o FILE]

        --python      record every call of a Python function
        --memory      record which lines allocate
        --no-native   do not sample native stacks
        --no-page     show the findings without the page
        --name NAME   variable that gets the Recording
        --compare NAME  compare with the Recording of this variable; `before` is that of the last cell
        -o FILE       file of the recording

        The Recording is also in the variable `before`, for --compare in the next cell. In %kymo the options end at the
        first word that is none, so that the rest is the statement.
        """
        words, code = _split(line, cell)
        given = _parser().parse_args(words)
        shell: Any = self.shell
        space = shell.user_ns
        other = space.get(given.compare) if given.compare else None
        if given.compare and not isinstance(other, Recording):
            raise UsageError(f"%kymo: {given.compare} is no Recording; record one first: %%kymo --name {given.compare}")
        try:
            record = recording(given.output, python=given.python, memory=given.memory, native=not given.no_native)
        except Error as error:
            raise UsageError(f"%kymo: {error}") from None
        try:
            result = shell.run_cell(code, store_history=False)
        finally:
            record.stop()
        space["before"] = record
        if given.name:
            space[given.name] = record
        self._show(record, other, not given.no_page)
        result.raise_error()

    def _show(self, record: Recording, other: Recording | None, with_page: bool) -> None:
        from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

        display(Shown(record, with_page, other))  # type: ignore[no-untyped-call,unused-ignore]


_TAKES_VALUE = {"--name", "--compare", "-o", "--output"}


def _split(line: str, cell: str | None) -> tuple[list[str], str]:
    """Options, and the code to run."""
    if cell is not None:
        return shlex.split(line), cell
    rest, words = line.lstrip(), []
    while rest.startswith("-"):
        word, _, rest = rest.partition(" ")
        words.append(word)
        rest = rest.lstrip()
        if word in _TAKES_VALUE:
            value, _, rest = rest.partition(" ")
            words.append(value)
            rest = rest.lstrip()
    return words, rest


def load(shell: Any) -> None:
    """Registers the magics."""
    shell.register_magics(KymoMagics)
