"""SQL over a recording, by the `kymo` program: DuckDB never comes into the process that is recorded."""
import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

from kymo._kymo import Error, directory

_PACKAGE = pathlib.Path(__file__).parent
# Where the program is beside this package: in a build folder, below an installed prefix.
_BESIDE = (_PACKAGE / "../../kymo", _PACKAGE / "../../../../bin/kymo")


def find_program() -> str:
    """The `kymo` program: $KYMO_BIN, else the one that came with this package, else the one on PATH."""
    given = os.environ.get("KYMO_BIN")
    if given:
        return given
    for path in _BESIDE:
        if path.is_file() and os.access(path, os.X_OK):
            return os.path.normpath(path)
    found = shutil.which("kymo")
    if not found:
        raise Error(
            "kymo.query: the kymo program was not found beside the package or on PATH; "
            "install it, or set KYMO_BIN to its path"
        )
    return found


def own_recording() -> str | None:
    """The recording that this process is a part of."""
    mine = directory()
    return os.path.dirname(mine) if mine else None


def query(sql: str, target: str | int | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Runs a query and gives its rows as a list of dicts.

        >>> kymo.query("SELECT name, count FROM trace.regions")          # doctest: +SKIP
        [{'name': 'load', 'count': 12}]

    target is what the command line takes: a pid, the path of a recording, "latest". None is the recording of this
    process, else the latest one. What is wrong with the query or the target raises kymo.Error. The rows come as JSON
    through a child process; for large results take `kymo query -f arrow` or `-f parquet`.
    """
    if not isinstance(sql, str):
        raise TypeError(f"kymo.query: sql takes a str, not {type(sql).__name__}")
    where = os.fspath(target) if isinstance(target, os.PathLike) else str(target or own_recording() or "latest")
    program = find_program()
    try:
        done = subprocess.run(
            [program, "query", "-f", "json", where, sql],
            stdin=subprocess.DEVNULL, capture_output=True, env={**os.environ, "KYMO": "off"}, check=False,
        )
    except OSError as error:
        raise Error(f"kymo.query: {program} could not be started: {error.strerror}") from None
    if done.returncode:
        raise Error(_sentence(done))
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def _sentence(done: subprocess.CompletedProcess[bytes]) -> str:
    said = done.stderr.decode(errors="replace").strip()
    return said or f"kymo query ended with status {done.returncode} and said nothing"
