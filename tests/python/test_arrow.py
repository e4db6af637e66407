"""What kymo.query() gives: rows for people, Arrow for pandas, polars and pyarrow."""
import datetime
import decimal

import pytest

import kymo


@pytest.fixture
def ask(record):
    """ask(sql): over a recording with three rows in app.t."""
    recording = record("""
        rows = kymo.table("app.t", n=int, x=float, text=str, ok=bool)
        for i in range(3):
            rows.append(i, i / 2, f"row {i} ü", i == 1)
    """)
    return recording.query


ROWS = [{"n": 0, "x": 0.0, "text": "row 0 ü", "ok": False}, {"n": 1, "x": 0.5, "text": "row 1 ü", "ok": True},
        {"n": 2, "x": 1.0, "text": "row 2 ü", "ok": False}]
SQL = "SELECT n, x, text, ok FROM app.t ORDER BY n"


def test_a_result_is_a_sequence_of_dicts(ask):
    result = ask(SQL)
    assert isinstance(result, kymo.Result)
    assert list(result) == ROWS and result.rows() == ROWS and result == ROWS and result == ask(SQL)
    assert len(result) == 3 and bool(result) and result[0] == ROWS[0] and result[-1] == ROWS[2] and result[1:] == ROWS[1:]
    assert result.columns == ("n", "x", "text", "ok")
    assert repr(result) == repr(ROWS)
    assert ROWS[1] in result and result.index(ROWS[1]) == 1
    assert result != ask("SELECT 1 AS n") and result != 5


def test_enums_are_text_at_any_depth(ask):
    assert ask("SELECT 'b'::ENUM('a', 'b') AS e, ['b', NULL]::ENUM('a', 'b')[] AS l, {'x': 'a'::ENUM('a', 'b')} AS s UNION ALL "
               "SELECT NULL, [], NULL") == [{"e": "b", "l": ["b", None], "s": {"x": "a"}}, {"e": None, "l": [], "s": None}]
    words = ", ".join(f"'{i}'" for i in range(300))  # more than a byte counts
    assert ask(f"SELECT range::VARCHAR::ENUM({words}) AS e FROM range(300)") == [{"e": str(i)} for i in range(300)]
    assert ask("SELECT 'a'::ENUM('a') AS e WHERE false").columns == ("e",)


def test_an_empty_result_has_its_columns(ask):
    result = ask("SELECT n, text FROM app.t WHERE n > 100")
    assert (len(result), bool(result), result.columns, repr(result)) == (0, False, ("n", "text"), "[]")


def test_a_long_result_is_not_printed_as_a_whole(ask):
    assert repr(ask("SELECT range AS i, 0 AS z FROM range(5000)")) == "<kymo.Result: 5000 rows of i, z>"
    assert [row["i"] for row in ask("SELECT range AS i FROM range(5000)")] == list(range(5000))


VALUES = [
    ("NULL", None), ("true", True), ("(-5)::TINYINT", -5), ("250::UTINYINT", 250), ("(-30000)::SMALLINT", -30000),
    ("18446744073709551615::UBIGINT", 2**64 - 1), ("(-9223372036854775808)::BIGINT", -2**63), ("1.5::FLOAT", 1.5),
    ("'inf'::DOUBLE", float("inf")), ("'ü'", "ü"), ("repeat('x', 100000)", "x" * 100_000),
    ("'\\x00\\xFF'::BLOB", b"\x00\xff"), ("sum(5)", 5), ("170141183460469231731687303715884105727::HUGEINT", 2**127 - 1),
    ("(-12.345)::DECIMAL(10, 3)", decimal.Decimal("-12.345")), ("DATE '2024-02-29'", datetime.date(2024, 2, 29)),
    ("DATE '1969-12-31'", datetime.date(1969, 12, 31)),
    ("TIMESTAMP '2024-02-29 12:34:56.789012'", datetime.datetime(2024, 2, 29, 12, 34, 56, 789012)),
    ("TIMESTAMP_NS '2024-02-29 12:34:56.789012345'", datetime.datetime(2024, 2, 29, 12, 34, 56, 789012)),
    ("TIME '12:34:56'", datetime.time(12, 34, 56)), ("[1, NULL, 3]", [1, None, 3]), ("[[], ['a']]", [[], ["a"]]),
    ("{'a': 1, 'b': [NULL, 'x']}", {"a": 1, "b": [None, "x"]}), ("MAP {'k': 5}", [{"key": "k", "value": 5}]),
    ("[1, 2, 3]::INTEGER[3]", [1, 2, 3]),
]


@pytest.mark.parametrize("sql, value", VALUES, ids=[sql[:40] for sql, _ in VALUES])
def test_every_type_has_its_python_object(ask, sql, value):
    (row,) = ask(f"SELECT {sql} AS v")
    assert row["v"] == value and type(row["v"]) is type(value)


def test_what_has_no_python_object_says_so_and_is_still_arrow(ask):
    result = ask("SELECT INTERVAL 1 MONTH AS v")
    with pytest.raises(ValueError, match="column v has the Arrow type tin, which has no Python equivalent"):
        len(result)


def test_pyarrow_takes_it(ask):
    pyarrow = pytest.importorskip("pyarrow")
    result = ask(SQL)
    table = pyarrow.table(result)
    assert table.to_pylist() == ROWS
    assert [str(field.type) for field in table.schema] == ["int64", "double", "string", "bool"]
    assert pyarrow.RecordBatchReader.from_stream(result).read_all().num_rows == 3


def test_pyarrow_points_into_one_buffer_of_ours(ask):
    """Without a copy: columns of one batch lie within the bytes of that batch."""
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(ask("SELECT range AS a, range + 1 AS b FROM range(2000)"))
    places = [column.chunk(0).buffers()[1].address for column in table.columns]
    assert 0 < places[1] - places[0] < 2000 * 8 + 4096


def test_polars_takes_it(ask):
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(ask(SQL)).to_dicts() == ROWS


def test_pandas_takes_it(ask):
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame.from_arrow(ask(SQL)).to_dict("records") == ROWS


def test_a_capsule_that_nobody_takes_is_released(ask):
    result = ask(SQL)
    for _ in range(100):
        assert "arrow_array_stream" in repr(result.__arrow_c_stream__())


def test_bytes_that_are_no_arrow_are_an_error():
    from kymo import _arrow

    for bad in (b"", b"x", b"\xff" * 8, b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\0" * 16, b"\xff" * 4096):
        with pytest.raises(ValueError, match="cannot read the (columns|rows)"):
            _arrow.rows(bad, lambda *_: None)
    with pytest.raises(TypeError):
        _arrow.stream("text")


def test_a_result_that_was_cut_is_an_error_or_its_beginning(ask):
    from kymo import _arrow

    data = ask("SELECT range AS a, 'text ' || range AS t FROM range(10)")._data
    whole = _arrow.rows(data, None)[1]
    for end in range(0, len(data), 3):
        try:
            rows = _arrow.rows(data[:end], None)[1]
        except ValueError:
            continue
        assert rows in ([], whole)


def test_what_is_wrong_raises_a_sentence(ask):
    with pytest.raises(kymo.Error, match="no_such"):
        ask("SELECT no_such FROM app.t")
    with pytest.raises(TypeError, match="kymo.query: sql takes a str, not int"):
        kymo.query(5)
