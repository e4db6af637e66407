"""What a traced program does has its zones: threads, generators, tasks, exceptions, C functions, lines; and nothing breaks."""
import textwrap

import pytest
from trace_tools import VERSIONS, on_every_python, plainly, traced  # noqa: F401

HOW = {"calls": "", "lines": "lines=True", "c_calls": "c_calls=True"}
every_way = pytest.mark.parametrize("how", list(HOW.values()), ids=list(HOW))


def lines_of(recording, name):
    return recording.column(f"SELECT line FROM trace.zones WHERE source = 'line' AND name LIKE '{name}:%' ORDER BY start_ns")


@on_every_python
def test_the_mechanism_is_that_of_the_version(traced, python):  # noqa: F811
    words = traced(python, """
        print(json.dumps([trace.mechanism(), trace.mechanism(True, False), trace.mechanism(False, True), trace.start(),
                          trace.active(), trace.stop(), trace.active(), trace.stop(), trace.active()]))
        """).said()
    if VERSIONS[python] >= (3, 12):
        chosen = ["monitoring", "monitoring", "monitoring", "monitoring"]
    else:
        best = "frame" if VERSIONS[python] >= (3, 11, 4) else "profile"
        chosen = [best, "trace", "profile", best]
    assert words == [*chosen, True, None, False, None, False]


@on_every_python
def test_starts_nest_and_the_options_of_the_outermost_count(traced, python):  # noqa: F811
    recording = traced(python, """
        def f():
            pass
        f(); trace.start(); f(); trace.start(lines=True); f(); trace.stop(); f(); trace.stop(); f()
        """)
    assert recording.counts("f") == [3]
    assert recording.one("SELECT count(*) FROM trace.zones WHERE source = 'line'") == 0


@on_every_python
@every_way
def test_functions_have_qualified_names_files_and_lines(traced, python, how):  # noqa: F811
    recording = traced(python, f"""
        class A:
            def method(self):
                def inner():
                    pass
                inner()
        trace.start({how})
        A().method()
        trace.stop()
        """)
    rows = recording.query("SELECT name, regexp_extract(file, '[^/]*$') AS file, line, depth FROM trace.zones "
                           "WHERE source = 'python' ORDER BY start_ns")
    assert [(r["file"], r["line"]) for r in rows] == [("script.py", 5), ("script.py", 6)]
    assert [r["name"] for r in rows] == ["A.method", "A.method.<locals>.inner"]
    assert rows[0]["depth"] < rows[1]["depth"]


@on_every_python
@every_way
def test_threads_that_run_already_and_threads_that_begin_are_traced(traced, python, how):  # noqa: F811
    recording = traced(python, f"""
        import threading
        go, ready = threading.Event(), threading.Barrier(3)
        def f():
            pass
        def early():
            ready.wait()
            go.wait()
            for _ in range(10):
                f()
        def late():
            for _ in range(20):
                f()
        before = [threading.Thread(target=early, name="early-%d" % i) for i in range(2)]
        for t in before:
            t.start()
        ready.wait()
        trace.start({how})
        after = [threading.Thread(target=late, name="late-%d" % i) for i in range(2)]
        for t in after:
            t.start()
        go.set()
        for t in before + after:
            t.join()
        trace.stop()
        """)
    rows = recording.query("SELECT thread, count(*) AS n FROM trace.zones WHERE name = 'f' GROUP BY ALL ORDER BY ALL")
    assert {r["thread"]: int(r["n"]) for r in rows} == {"early-0": 10, "early-1": 10, "late-0": 20, "late-1": 20}
    assert recording.overlaps() == 0


@on_every_python
@every_way
def test_each_resume_of_a_generator_is_a_call_and_its_making_is_none(traced, python, how):  # noqa: F811
    recording = traced(python, f"""
        def numbers(n):
            for i in range(n):
                yield i
        def through():
            return (yield from numbers(3))
        trace.start({how})
        made = numbers(5)
        list(numbers(4)); list(through())
        half = numbers(9); next(half); half.close()
        thrown = numbers(2); next(thrown)
        try:
            thrown.throw(KeyError)
        except KeyError:
            pass
        trace.stop()
        """)
    # 4 + 1 for the first; 3 + 1 inside of through, which is resumed as often; next and close; next and throw.
    close = 0 if VERSIONS[python][:2] == (3, 13) else 1  # 3.13 closes a generator that catches nothing without running it
    assert recording.counts("numbers", "through") == [5 + 4 + 1 + close + 2, 4]
    assert recording.overlaps() == 0


@on_every_python
@every_way
def test_exceptions_unwind_balanced(traced, python, how):  # noqa: F811
    recording = traced(python, f"""
        def bottom():
            raise ValueError
        def middle():
            bottom()
        def top():
            try:
                middle()
            except ValueError:
                return after()
        def after():
            pass
        trace.start({how})
        for _ in range(3):
            top()
        trace.stop()
        """)
    assert recording.counts("top", "middle", "bottom", "after") == [3, 3, 3, 3]
    depth = {r["name"]: r["depth"] for r in recording.query(
        "SELECT DISTINCT name, depth FROM trace.zones WHERE source = 'python'")}
    assert depth["after"] == depth["middle"] < depth["bottom"]
    assert recording.overlaps() == 0


@on_every_python
@every_way
def test_asyncio_tasks_have_lanes_of_their_own(traced, python, how):  # noqa: F811
    recording = traced(python, f"""
        import asyncio
        def step():
            pass
        async def inner():
            await asyncio.sleep(0)
            step()
        async def work(times):
            for _ in range(times):
                await inner()
        async def main():
            await asyncio.gather(*[asyncio.create_task(work(n), name="work-%d" % n) for n in (1, 2, 3)])
        def outside():
            pass
        trace.start({how})
        asyncio.run(main())
        outside()
        trace.stop()
        """)
    rows = recording.query("SELECT thread, count(*) AS n FROM trace.zones WHERE name = 'step' GROUP BY ALL ORDER BY ALL")
    assert {r["thread"]: int(r["n"]) for r in rows} == {"work-1": 1, "work-2": 2, "work-3": 3}
    assert recording.column("SELECT thread FROM trace.zones WHERE name = 'outside'") == ["MainThread"]
    assert recording.one("SELECT count(DISTINCT tid) FROM trace.zones") == 1
    assert recording.overlaps() == 0


@on_every_python
def test_c_functions_have_their_own_names(traced, python):  # noqa: F811
    recording = traced(python, """
        import time
        def f():
            items = []
            items.append(len("abc"))
            time.sleep(0)
            try:
                int.from_bytes(1)
            except TypeError:
                pass
        trace.start(c_calls=True)
        f()
        trace.stop()
        """)
    names = recording.column("SELECT name FROM trace.zones WHERE source = 'c' ORDER BY start_ns")
    assert [n for n in names if n != "kymo._trace.stop"] == ["len", "list.append", "time.sleep", "int.from_bytes"]
    assert recording.overlaps() == 0


@on_every_python
def test_lines_are_zones_below_their_function(traced, python):  # noqa: F811
    recording = traced(python, """
        def g():
            return 1
        def f():
            a = 1
            for i in range(2):
                g()
            return a
        trace.start(lines=True)
        f()
        trace.stop()
        """)
    assert lines_of(recording, "f") == [7, 8, 9, 8, 9, 8, 10]
    assert lines_of(recording, "g") == [5, 5]
    depth = {r["name"]: r["depth"] for r in recording.query("SELECT DISTINCT name, depth FROM trace.zones")}
    assert [depth[n] - depth["f"] for n in ("f:9", "g", "g:5")] == [1, 2, 3]
    assert recording.overlaps() == 0


@on_every_python
def test_a_function_that_runs_already_has_its_remaining_lines(traced, python):  # noqa: F811
    recording = traced(python, """
        def callee():
            pass
        def f():
            callee()
            trace.start(lines=True)
            callee()
            a = 1
            trace.stop()
            callee()
        f()
        f()
        """)
    assert recording.counts("f", "callee") == [0, 2]
    assert lines_of(recording, "f") == [9, 10, 11, 9, 10, 11]
    assert recording.overlaps() == 0


DEEP = """
    def rec(n):
        return 0 if n == 0 else 1 + rec(n - 1)
    def fail(n):
        if n == 0:
            raise ValueError
        try:
            fail(n - 1)
        finally:
            leaf()
    def leaf():
        pass
    def main():
        sys.setrecursionlimit(1000000)
        assert rec(100000) == 100000
        try:
            fail(50000)
        except ValueError:
            pass
        sys.setrecursionlimit(5000)
        try:
            rec(1000000)
        except RecursionError:
            pass
    """
SMALL = """
    import threading
    threading.stack_size(256 * 1024)
    def rec(n):
        return 0 if n == 0 else 1 + rec(n - 1)
    def body():
        for _ in range(3):
            try:
                rec(1000000)
            except RecursionError:
                pass
            assert rec(900) == 900
    def main():
        threads = [threading.Thread(target=body) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    """


@on_every_python
@every_way
@pytest.mark.parametrize("program", [DEEP, SMALL], ids=["deep", "small stacks"])
def test_deep_recursion_does_not_crash(traced, tmp_path, python, how, program):  # noqa: F811
    main = textwrap.dedent(program)
    if plainly(python, main + "main()\n", tmp_path).returncode:
        pytest.skip("this Python crashes on it without us: its calls use C stack")
    recording = traced(python, main + f"trace.start({how})\nmain()\ntrace.stop()\nprint(json.dumps(trace.gaps()))\n")
    gaps = recording.said()
    others = gaps.pop("deep")
    assert set(gaps.values()) == {0}
    if program is DEEP:
        assert recording.counts("fail", "leaf") == [50001, 50000]
        assert others == 0
        # However deep it went, no time is counted twice.
        spent = recording.one("SELECT sum(self_ns)::BIGINT FROM trace.regions")
        passed = recording.one("SELECT max(start_ns + duration_ns) - min(start_ns) FROM trace.zones")
        assert spent <= passed + 100  # each region's is rounded
    # Whether all of it was seen or a gap says that not, the table agrees with the count.
    assert recording.one("SELECT coalesce(sum(events), 0) FROM kymo.gaps") == others
    assert recording.overlaps() == 0


@on_every_python
@every_way
def test_a_child_of_fork_records_on_and_exits_as_it_would(traced, python, how):  # noqa: F811
    recording = traced(python, f"""
        import os
        def f():
            pass
        def parent():
            f()
            pid = os.fork()
            for _ in range(5):
                f()
            if not pid:
                os._exit(7)
            print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
        trace.start({how})
        parent()
        trace.stop()
        """)
    assert '7' in recording.stdout.split()
    rows = recording.query("SELECT pid, count(*) AS n FROM trace.zones WHERE name = 'f' GROUP BY ALL ORDER BY n")
    assert [int(r["n"]) for r in rows] == [5, 6]
    assert recording.overlaps() == 0


@on_every_python
@every_way
def test_a_program_may_end_while_it_is_traced_and_threads_run(traced, python, how):  # noqa: F811
    recording = traced(python, f"""
        import threading, time
        def f():
            pass
        class Last:
            def __del__(self):
                f()
        def spin():
            while True:
                f()
        trace.start({how})
        threading.Thread(target=spin, daemon=True).start()
        time.sleep(0.02)
        last = Last(); ring = [last]; ring.append(ring)
        sys.exit(3)
        """, status=3)
    assert recording.counts("f")[0] > 0
    assert recording.stderr.count("Error") == 0


@on_every_python
@every_way
def test_a_second_interpreter_is_left_alone(traced, python, how):  # noqa: F811
    recording = traced(python, f"""
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        trace.start({how})
        second = interpreters.create()
        interpreters.run_string(second, '''if True:
            def f():
                pass
            f()
            try:
                import kymo._trace as trace
                trace.start(); f(); trace.stop()
            except ImportError:
                pass
            ''')
        interpreters.destroy(second)
        print(json.dumps(trace.active()))
        """)
    assert recording.said() is True
    assert recording.counts("f") == [0]


@on_every_python
def test_recording_that_is_turned_off_and_on_stays_balanced(traced, python):  # noqa: F811
    recording = traced(python, """
        import kymo
        def f(n):
            if n == 2:
                kymo.disable()
            if n:
                f(n - 1)
            if n == 2:
                kymo.enable()
            g()
        def g():
            pass
        trace.start()
        for _ in range(3):
            f(4)
        g()
        trace.stop()
        """)
    # Of f(4) … f(0) three begin while it is on; g is called three times after it is on again.
    assert recording.counts("f", "g") == [9, 10]
    assert recording.column("SELECT depth FROM trace.zones WHERE name = 'g' ORDER BY start_ns DESC LIMIT 1") == [0]
    assert recording.overlaps() == 0


@on_every_python
def test_what_a_call_costs_is_in_the_recording(traced, python):  # noqa: F811
    recording = traced(python, """
        def f():
            pass
        trace.start()
        f()
        trace.stop()
        """)
    (row,) = recording.query("FROM kymo.overhead WHERE source = 'python'")
    assert row["cost_ns_per_event"] > 0 and row["total_ns"] >= row["events"]
