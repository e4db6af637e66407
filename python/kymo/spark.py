"""Jobs of a lake in Apache Spark, through your own SparkSession (`pip install kymo[spark]`).

    import kymo.spark
    kymo.spark.attach(spark, "/shared/lake/job7")       # tables of the same names: trace.steps, dist.late, ...
    kymo.spark.sql(spark, "SELECT rank, max(duration_ns) FROM trace.steps GROUP BY rank ORDER BY 2 DESC LIMIT 5").show()

attach() creates databases and tables with explicit schemas; what it runs is printed by `kymo lake spark-sql LAKE/JOB`.
sql() takes the SQL that means the same in DuckDB and in Spark. It rewrites what was shown to be equal, and refuses the
rest by name: spark.sql() runs anything, and may answer differently from `kymo query`.
"""
import os
import re
import subprocess
from typing import Any

from ._query import find_program

__all__ = ["Refused", "attach", "portable", "sql"]


class Refused(ValueError):
    """The query has something that Spark and DuckDB answer differently, or that was never compared."""


# ---- tables -----------------------------------------------------------------------------------------

def attach(spark: Any, path: Any) -> list[str]:
    """Creates the tables of the job of a lake, LAKE/JOB, in the current catalog, and returns their names. Tables of the
    same names that an earlier attach() has made are replaced."""
    words = [find_program(), "lake", "spark-sql", os.path.abspath(path)]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise OSError(done.stderr.strip().removeprefix("kymo lake: "))
    names = []
    for statement in done.stdout.split(";\n"):
        made = re.match(r"(CREATE OR REPLACE VIEW|DROP TABLE IF EXISTS) (\S+)", statement)
        if made:
            names.append(made[2])
            _drop_other_kind(spark, made[2], "TABLE" if made[1].startswith("CREATE") else "VIEW")
        if statement.strip():
            spark.sql(statement)
    return names


def _drop_other_kind(spark: Any, name: str, kind: str) -> None:
    """A table cannot replace a view, nor the reverse."""
    from pyspark.errors import AnalysisException  # type: ignore[import-not-found,unused-ignore]

    try:
        spark.sql(f"DROP {kind} IF EXISTS {name}")
    except AnalysisException:
        pass  # it is of the kind that is replaced


# ---- SQL --------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"""\s+|--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|"""
                    r"""\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+|[A-Za-z_]\w*|<=|>=|<>|!=|\|\||::|.""", re.S)

_WORDS = set("""select from where group by having order limit as and or not in is null case when then else end distinct all union
    except intersect join left right full inner cross on using with over partition rows range between unbounded preceding
    following current row asc desc nulls first last like true false cast bigint double varchar int integer string boolean
    within exists filter""".split())
# Functions whose answers were compared (tests/spark): the same name and the same meaning in both.
_FUNCTIONS = set("""count sum min max avg median percentile_cont percentile_disc max_by min_by round greatest coalesce lower row_number
    regr_slope concat cast""".split())
# Words that are functions, too, and mean something else or nothing in the other engine.
_NOT_CALLED = set("first last left right row rows range string boolean double int integer bigint".split())
_WHOLE = {"bigint", "int", "integer"}


def portable(query: str) -> str:
    """The query as Spark has to run it. Refused: with what has no equal."""
    tokens = [t for t in _TOKEN.findall(query) if not t.isspace() and not t.startswith("--")]
    while tokens and tokens[-1] == ";":
        tokens.pop()
    if not tokens or tokens[0].lower() not in ("select", "with"):
        raise Refused("the query must begin with SELECT or WITH")
    _check(tokens)
    return " ".join(_rewrite(tokens)).replace(" . ", ".")


def sql(spark: Any, query: str) -> Any:
    """A DataFrame with the answer of the portable query. It needs spark.sql.ansi.enabled, the default of Spark 4: without
    it Spark gives NULL, or a number that has wrapped, where DuckDB has an error."""
    if str(spark.conf.get("spark.sql.ansi.enabled", "false")).lower() != "true":
        raise Refused("spark.sql.ansi.enabled is false; set it to true: sums that overflow would wrap")
    return spark.sql(portable(query))


def _check(tokens: list[str]) -> None:
    ordered = {0: False}
    depth = 0
    for i, token in enumerate(tokens):
        word, after, before = token.lower(), tokens[i + 1:i + 2], tokens[i - 1].lower() if i else ""
        if token == "(":
            depth += 1
            ordered[depth] = False
        elif token == ")":
            depth -= 1
        elif token == "::":
            raise Refused("::TYPE; use CAST(... AS TYPE)")
        elif token in "[]{}:?@#$%^&~`\\!":
            raise Refused(f"the operator {token}")
        elif token[0] == '"':
            raise Refused(f"{token}: Spark takes it for a text")
        elif word == "order":
            ordered[depth] = True
        elif word == "limit":
            if not ordered.get(depth):
                raise Refused("LIMIT without ORDER BY: which rows remain is not defined")
        elif word == "/" and after == ["/"]:
            raise Refused("the operator //")
        elif re.match(r"[A-Za-z_]", token) and after == ["("] and before != "." and word not in _FUNCTIONS | _WORDS - _NOT_CALLED:
            if not _is_table_name(tokens, i):
                raise Refused(f"the function {word}()")
        elif word in ("qualify", "pivot",
                      "unpivot", "asof", "unnest", "explode", "lateral", "sample", "tablesample", "offset", "exclude",
                      "replace", "columns", "ilike", "similar", "glob", "rlike", "try_cast", "interval", "group_concat", "positional",
                      "window", "semi", "anti", "natural", "ignore", "respect"):
            raise Refused(word.upper())
    _check_casts(tokens)


def _is_table_name(tokens: list[str], i: int) -> bool:
    """WITH name (...) and name AS (...)."""
    return tokens[i].lower() in ("as", "values") or (i > 0 and tokens[i - 1].lower() == "with")


def _end(tokens: list[str], i: int) -> int:
    """The index of the parenthesis that closes the one at i."""
    depth = 0
    for k in range(i, len(tokens)):
        depth += (tokens[k] == "(") - (tokens[k] == ")")
        if not depth:
            return k
    raise Refused("a parenthesis is not closed")


def _check_casts(tokens: list[str]) -> None:
    for i, token in enumerate(tokens):
        if token.lower() == "cast" and tokens[i + 1:i + 2] == ["("]:
            end = _end(tokens, i + 1)
            if tokens[end - 1].lower() in _WHOLE and not (tokens[i + 2].lower() in ("sum", "count", "round") and tokens[i + 3] == "("
                                                          and tokens[_end(tokens, i + 3) + 1].lower() == "as"):
                raise Refused("CAST to a whole number: Spark truncates where DuckDB rounds; use CAST(round(...) AS BIGINT)")


def _rewrite(tokens: list[str]) -> list[str]:
    out: list[str] = []
    i = 0
    within = -1  # ORDER BY of WITHIN GROUP has no NULLs
    while i < len(tokens):
        token, word = tokens[i], tokens[i].lower()
        call = tokens[i + 1:i + 2] == ["("]
        if word == "within":
            within = _end(tokens, i + 2)
        if word == "concat" and call:
            # DuckDB skips NULLs.
            end = _end(tokens, i + 1)
            out += ["concat_ws", "(", "''", ",", *_rewrite(tokens[i + 2:end]), ")"]
            i = end + 1
        elif word in ("max_by", "min_by") and call:
            # DuckDB skips rows whose value is NULL.
            end = _end(tokens, i + 1)
            if tokens[end + 1:end + 2] and tokens[end + 1].lower() in ("over", "filter"):
                raise Refused(f"{word}() with {tokens[end + 1].upper()}")
            value = _split(tokens[i + 2:end])[0]
            out += [token, "(", *_rewrite(tokens[i + 2:end]), ")", "FILTER", "(", "WHERE", *_rewrite(value), "IS", "NOT", "NULL", ")"]
            i = end + 1
        elif word == "order" and i > within:
            terms = _order_end(tokens, i + 2)
            out += ["ORDER", "BY", *_nulls_last(tokens[i + 2:terms])]
            i = terms
        elif token[0] == "'":
            out.append("'" + token[1:-1].replace("\\", "\\\\").replace("''", "\\'") + "'")
            i += 1
        else:
            out.append(token)
            i += 1
    return out


def _split(tokens: list[str]) -> list[list[str]]:
    """At the commas outside of parentheses."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if token == "," and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _order_end(tokens: list[str], i: int) -> int:
    depth = 0
    while i < len(tokens):
        depth += (tokens[i] == "(") - (tokens[i] == ")")
        if depth < 0 or (not depth and tokens[i].lower() in ("limit", "rows", "range", "union", "except", "intersect")):
            break
        i += 1
    return i


def _nulls_last(tokens: list[str]) -> list[str]:
    """DuckDB's order: Spark has NULLs first where it ascends."""
    out: list[str] = []
    for part in _split(tokens):
        if out:
            out.append(",")
        out += _rewrite(part)
        if "nulls" not in [token.lower() for token in part]:
            out += ["NULLS", "LAST"]
    return out
