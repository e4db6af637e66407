"""Marks, counters, steps, phases and tables."""
import itertools

import pytest


def test_a_mark_has_a_name_and_a_text_of_any_length(record):
    recording = record("""
        kymo.mark("plain")
        kymo.mark("epoch", "läuft " * 50_000)
        kymo.mark(name="named", text="t")
        kymo.signpost("header", "message")
        kymo.signpost(header="only")
    """)
    rows = recording.query("SELECT name, text FROM trace.marks ORDER BY ts_ns")
    assert [row["name"] for row in rows] == ["plain", "epoch", "named", "header", "only"]
    assert [row["text"] or None for row in rows] == [None, "läuft " * 50_000, "t", "message", None]


def test_a_counter_takes_any_number(record):
    recording = record("""
        import decimal, fractions
        class Tensor:
            def __float__(self):
                return 0.125
        for value in (1, 2.5, True, decimal.Decimal("0.5"), fractions.Fraction(1, 4), Tensor(), 10**400, -10**400):
            kymo.record("x", value)
    """)
    rows = recording.column("SELECT CAST(value AS VARCHAR) FROM trace.counters WHERE name = 'x' ORDER BY ts_ns")
    assert [float(value) for value in rows] == [1, 2.5, 1, 0.5, 0.25, 0.125, float("inf"), float("-inf")]


def test_a_step_ends_where_the_next_one_begins(record):
    recording = record("""
        import time
        print(kymo.current_step())
        for i in range(5):
            kymo.step()
            time.sleep(0.01)
            kymo.record("i", i)
        kymo.step_end()
        kymo.step_end()
    """)
    rows = recording.query("SELECT step, name, start_ns, duration_ns FROM trace.steps ORDER BY start_ns")
    assert [row["name"] for row in rows] == ["step"] * 5
    first = rows[0]["step"]
    assert [row["step"] - first for row in rows] == [0, 1, 2, 3, 4]
    for one, two in itertools.pairwise(rows):
        assert abs(one["start_ns"] + one["duration_ns"] - two["start_ns"]) <= 2


def test_a_phase_is_a_zone_and_a_part_of_the_step(record):
    recording = record("""
        import time
        for _ in range(3):
            kymo.step("train")
            with kymo.phase("data"):
                with kymo.phase("data"):       # counts once
                    time.sleep(0.02)
            with kymo.phase("backward"):
                time.sleep(0.01)
        kymo.step_end("train")
    """)
    rows = recording.query("SELECT duration_ns, data_ns, forward_ns, backward_ns, optimizer_ns FROM trace.steps")
    assert len(rows) == 3
    for row in rows:
        assert 20e6 <= row["data_ns"] <= row["duration_ns"] - row["backward_ns"]
        assert row["backward_ns"] >= 10e6
        assert not row["forward_ns"] and not row["optimizer_ns"]
    assert recording.one("SELECT count FROM trace.regions WHERE name = 'backward'") == 3


def test_a_phase_decorates_too(record):
    recording = record("""
        @kymo.phase("optimizer")
        def update():
            return sum(range(100_000))
        kymo.step()
        update()
        kymo.step_end()
    """)
    assert recording.one("SELECT optimizer_ns FROM trace.steps") > 0


def test_a_table_keeps_what_was_appended_by_order_and_by_name(record):
    recording = record("""
        requests = kymo.table("app.requests", ms=float, path=str, status=int, ok=bool)
        requests.append(1.5, "/", 200, True)
        requests.append(path="/größe", ok=False, ms=2, status=-5)
        requests.append(0.25, "/x", status=10**30, ok=1)
        print(requests, requests.name)
    """)
    assert recording.stdout == "<kymo.table 'app.requests'> app.requests\n"
    assert recording.query("SELECT ms, path, status, ok FROM app.requests") == [
        {"ms": 1.5, "path": "/", "status": 200, "ok": True},
        {"ms": 2.0, "path": "/größe", "status": -5, "ok": False},
        {"ms": 0.25, "path": "/x", "status": 2**63 - 1, "ok": True}]


def test_texts_are_cut_at_a_character(record):
    recording = record("""
        kymo.table("app.a", t=str).append("é" * 100)
        kymo.table("app.b", t=kymo.text(7)).append("é" * 100)
        kymo.table("app.c", t=kymo.text(300)).append("x" * 300)
    """)
    assert recording.one("SELECT t FROM app.a") == "é" * 32
    assert recording.one("SELECT t FROM app.b") == "é" * 3
    assert recording.one("SELECT t FROM app.c") == "x" * 300


def test_a_column_that_is_now_is_filled_in(record):
    recording = record("""
        events = kymo.table("app.events", at_ns=kymo.now, n=int)
        for i in range(3):
            events.append(i)
    """)
    rows = recording.query("SELECT at_ns, n FROM app.events ORDER BY at_ns")
    assert [row["n"] for row in rows] == [0, 1, 2]
    assert 0 < rows[0]["at_ns"] < rows[2]["at_ns"] < 60e9


def test_the_same_declaration_is_the_same_table(record):
    recording = record("""
        kymo.table("app.t", n=int).append(1)
        kymo.table("app.t", n=int).append(2)
    """)
    assert recording.column("SELECT n FROM app.t ORDER BY 1") == [1, 2]


def test_a_table_more_than_can_be_had_records_nothing_and_raises_nothing(record):
    recording = record("""
        tables = [kymo.table(f"app.t{i}", n=int) for i in range(100)]
        for i, table in enumerate(tables):
            table.append(i)
    """)
    assert recording.one("SELECT n FROM app.t0") == 0


MISTAKES = [
    ('kymo.mark(5)', "TypeError", "kymo.mark: name takes a str, not int"),
    ('kymo.mark("a", b"x")', "TypeError", "kymo.mark: text takes a str, not bytes"),
    ('kymo.mark()', "TypeError", "kymo.mark needs name"),
    ('kymo.mark("a", "b", "c")', "TypeError", "kymo.mark takes at most 2 arguments, got 3"),
    ('kymo.mark("a", name="b")', "TypeError", "kymo.mark got name twice"),
    ('kymo.mark("a", colour=1)', "TypeError", "kymo.mark takes no argument called 'colour'"),
    ('kymo.signpost(None)', "TypeError", "kymo.signpost: header takes a str, not NoneType"),
    ('kymo.record("x", "1")', "TypeError", "kymo.record: value takes a number, not str"),
    ('kymo.record(1, 1)', "TypeError", "kymo.record: name takes a str, not int"),
    ('kymo.step(1)', "TypeError", "kymo.step: name takes a str, not int"),
    ('kymo.thread_name(1)', "TypeError", "kymo.thread_name: name takes a str, not int"),
    ('kymo.phase("warmup")', "ValueError", 
     "kymo.phase('warmup'): a step has the phases data, forward, backward and optimizer; for anything else use kymo.region"),
    ('kymo.phase(1)', "TypeError", "kymo.phase: name takes a str, not int"),
    ('kymo.table("app.x", a=list)', "TypeError", 
     "column a: <class 'list'> is not a column type; use int, float, bool, str, kymo.text(bytes) or kymo.now"),
    ('kymo.table("app.x", a=kymo.text(0))', "ValueError", "column a: a text has 1 to 1024 bytes, not 0"),
    ('kymo.table("app.x", a=kymo.text(1024), b=int)', "ValueError", 
     "table app.x: a row has 1032 bytes, more than the maximum of 1024; shorten its texts"),
    ('kymo.table("app.x")', "ValueError", "table app.x: a table has 1 to 32 columns, not 0"),
    ('kymo.table("trace.x", a=int)', "ValueError", 
     "cannot declare the table 'trace.x': the schema trace is reserved for kymo; use another, for example app"),
    ('kymo.table("app.r", a=int, b=float).append(1)', "TypeError", "table app.r: column b is missing"),
    ('kymo.table("app.r", a=int, b=float).append(1, 2, 3)', "TypeError", "table app.r takes 2 values, got 3"),
    ('kymo.table("app.r", a=int, b=float).append(1, a=2)', "TypeError", "table app.r: column a was given twice"),
    ('kymo.table("app.r", a=int, b=float).append(1, c=2)', "TypeError", "table app.r has no column 'c'"),
    ('kymo.table("app.r", a=int, b=float).append(1.5, 2)', "TypeError", "column a takes int, not float"),
    ('kymo.table("app.r", a=int, b=float).append(1, "2")', "TypeError", "column b takes float, not str"),
    ('kymo.table("app.n", at=kymo.now).append(at=1)', "TypeError", "table app.n: column at is filled by kymo"),
    ('kymo.snapshot(5)', "TypeError", None),
    ('kymo.query(5)', "TypeError", "kymo.query: sql takes a str, not int"),
]


@pytest.mark.parametrize("on", ["off", "on"])
def test_wrong_arguments_raise_the_same_whether_it_records_or_not(plain, on):
    lines = "\n".join(f"attempt(lambda: {code})" for code, _, _ in MISTAKES)
    done = plain("def attempt(what):\n"
                 "    try:\n"
                 "        what()\n"
                 "        print('nothing')\n"
                 "    except Exception as error:\n"
                 "        print(type(error).__name__, error, sep=': ')\n"
                 "import sys\n" + lines, env={"KYMO": on})
    said = done.stdout.splitlines()
    assert len(said) == len(MISTAKES)
    for line, (code, kind, text) in zip(said, MISTAKES):
        if text is None:
            assert line.startswith(kind + ":"), code
        else:
            assert line == f"{kind}: {text}", code
