"""SQL over a recording, run by the `kymo` program: DuckDB is never loaded into the recorded process."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from kymo._kymo import Error, directory

TYPE_CHECKING = False  # importing typing would add milliseconds to each program that imports kymo
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from typing import Any, overload

    Rows = Sequence[dict[str, Any]]
else:
    Rows = Sequence

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def _beside() -> Iterator[str]:
    """Paths of the program installed with this package: in a build folder, a prefix, an environment."""
    yield os.path.join(_PACKAGE, "../../kymo")
    yield os.path.join(_PACKAGE, "../../../../bin/kymo")
    yield os.path.join(_PACKAGE, "../../../../../bin/kymo")
    yield os.path.join(os.path.dirname(sys.executable or ""), "kymo")


def find_program() -> str:
    """The `kymo` program: $KYMO_BIN, else the one installed with this package, else the one on PATH."""
    given = os.environ.get("KYMO_BIN")
    if given:
        return given
    for path in _beside():
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.normpath(path)
    import shutil

    found = shutil.which("kymo")
    if not found:
        raise Error(
            "cannot find the kymo program next to the package or on PATH; install it, or set KYMO_BIN to its path"
        )
    return found


def own_recording() -> str | None:
    """The recording of this process."""
    mine = directory()
    return os.path.dirname(mine) if mine else None


class Result(Rows):
    """The result of a query: a sequence of dicts, and an Arrow table, without a copy.

    >>> import kymo
    >>> result = kymo.query("SELECT name, count FROM trace.regions")          # doctest: +SKIP
    >>> result.columns                                                        # doctest: +SKIP
    ('name', 'count')
    >>> pyarrow.table(result); polars.DataFrame(result)                       # doctest: +SKIP
    >>> pandas.DataFrame.from_arrow(result)                                   # doctest: +SKIP
    """

    __slots__ = ("_data", "_decoded")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._decoded: tuple[tuple[str, ...], list[dict[str, Any]]] | None = None

    def _decode(self) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
        if self._decoded is None:
            from kymo import _arrow

            self._decoded = _arrow.rows(self._data, _special)
        return self._decoded

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return self._decode()[0]

    def rows(self) -> list[dict[str, Any]]:
        """The rows as a new list."""
        return list(self._decode()[1])

    def _repr_html_(self) -> str:
        """In a notebook: a table of the first rows."""
        from kymo._inside import rich

        return rich.table(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface for pyarrow, pandas and polars. requested_schema is ignored."""
        from kymo import _arrow

        return _arrow.stream(self._data)

    def __len__(self) -> int:
        return len(self._decode()[1])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._decode()[1])

    if TYPE_CHECKING:
        @overload
        def __getitem__(self, index: int) -> dict[str, Any]: ...
        @overload
        def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self._decode()[1][index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Result):
            return self._decode() == other._decode()
        return self._decode()[1] == other

    def __repr__(self) -> str:
        columns, rows = self._decode()
        if len(rows) <= 20:
            return repr(rows)
        return f"<kymo.Result: {len(rows)} rows of {', '.join(columns)}>"


_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # in a second


def _special(kind: str, value: Any, unit: str) -> Any:
    """Converts SQL dates, times and decimals to Python types for _arrow.rows, to the microsecond."""
    import datetime
    import decimal

    if kind == "decimal":
        return decimal.Decimal(value)
    if kind == "date":
        return datetime.date.fromordinal(value + datetime.date(1970, 1, 1).toordinal())
    passed = datetime.timedelta(microseconds=value * 1_000_000 // _TICKS[unit])
    if kind == "duration":
        return passed
    zone = datetime.timezone.utc if kind == "instant" else None
    moment = datetime.datetime(1970, 1, 1, tzinfo=zone) + passed
    return moment.time() if kind == "time" else moment


def query(sql: str, target: str | int | os.PathLike[str] | None = None) -> Result:
    """Runs a query. The rows are dicts; pandas, polars and pyarrow accept the result directly (see kymo.Result).

        >>> kymo.query("SELECT name, count FROM trace.regions").rows()          # doctest: +SKIP
        [{'name': 'load', 'count': 12}]

    target is a pid, the path of a recording or "latest", as on the command line. None: the recording of this process,
    else the latest one. Raises kymo.Error if the query or the target is wrong.
    """
    if not isinstance(sql, str):
        raise TypeError(f"kymo.query: sql takes a str, not {type(sql).__name__}")
    where = os.fspath(target) if isinstance(target, os.PathLike) else str(target or own_recording() or "latest")
    return Result(_run([find_program(), "query", "-f", "arrow", where, sql]))


def _run(command: list[str]) -> bytes:
    import subprocess

    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=plain_environment(), check=False)
    except OSError as error:
        raise Error(f"kymo.query: cannot start {command[0]}: {error.strerror}") from None
    if done.returncode:
        raise Error(_sentence(done))
    return done.stdout


def plain_environment() -> dict[str, str]:
    """The child must not be recorded."""
    return {**os.environ, "KYMO": "off"}


def _sentence(done: subprocess.CompletedProcess[bytes]) -> str:
    said = done.stderr.decode(errors="replace").strip()
    return said or f"kymo query failed with status {done.returncode} and no message"
