"""Table declarations: Python types as the type names of the extension."""
from __future__ import annotations

from kymo._kymo import Table

TYPE_CHECKING = False  # as in _query.py
if TYPE_CHECKING:
    from typing import Any, NoReturn

TEXT_BYTES = 64  # of a column of type `str`


class text:
    """The type of a text column with at most this many bytes of UTF-8; longer texts are truncated.

    >>> import kymo
    >>> log = kymo.table("app.log", line=kymo.text(200))
    """

    __slots__ = ("bytes",)

    def __init__(self, bytes: int) -> None:
        if not isinstance(bytes, int):
            raise TypeError(f"kymo.text takes a number of bytes, not {type(bytes).__name__}")
        self.bytes = bytes

    def __repr__(self) -> str:
        return f"kymo.text({self.bytes})"


class now:
    """The type of a column that kymo fills with the time of append(), in ns since the recording began."""

    def __new__(cls) -> NoReturn:
        raise TypeError("kymo.now is the type of a column, as in kymo.table(\"app.requests\", at_ns=kymo.now)")


_WORDS = {int: "int", float: "float", bool: "bool", now: "now"}


def _declaration(column: str, type_: Any) -> tuple[str, str, int]:
    if type_ is str:
        return column, "str", TEXT_BYTES
    if isinstance(type_, text):
        return column, "str", type_.bytes
    try:
        return column, _WORDS[type_], 0
    except (KeyError, TypeError):
        raise TypeError(
            f"column {column}: {type_!r} is not a column type; use int, float, bool, str, kymo.text(bytes) or kymo.now"
        ) from None


def table(name: str, /, **columns: Any) -> Table:
    """Declares a table of your own, named "schema.table" as in SQL, and returns it.

    >>> import kymo
    >>> requests = kymo.table("app.requests", at_ns=kymo.now, ms=float, path=str, ok=bool)
    >>> requests.append(1.5, "/", True)
    >>> requests.append(path="/cart", ms=2.25, ok=False)

    A column is int, float, bool, str (64 bytes of UTF-8; kymo.text(200) allows more) or kymo.now. Numbers that are too
    large are clamped. Repeating a declaration returns the same table; another declaration under that name, or a name
    in one of kymo's own schemas, raises ValueError. Query it with kymo.query("FROM app.requests").
    """
    return Table(name, tuple(_declaration(*column) for column in columns.items()))
