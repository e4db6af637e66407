"""The program's own hooks work while it is traced; where one takes ours, the gap is counted and we come back."""
import sys

import pytest
from trace_tools import VERSIONS, on_every_python, traced  # noqa: F401

FUNCTIONS = """
        import time
        def f():
            pass
        def come_back():
            for _ in range(100):
                pass
            f()
        """


def by_hooks(python):
    return VERSIONS[python] < (3, 11, 4)


@on_every_python
def test_cprofile_counts_as_without_us(traced, python):  # noqa: F811
    recording = traced(python, FUNCTIONS + """
        import cProfile, pstats
        trace.start()
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(100):
            f()
        profile.disable()
        stats = pstats.Stats(profile).stats
        for _ in range(50):
            f()
        trace.stop()
        print(json.dumps([[v[0] for k, v in stats.items() if k[2] == "f"], trace.gaps()["displaced"]]))
        """)
    counted, displaced = recording.said()
    assert counted == [100]
    if by_hooks(python):
        assert recording.counts("f") == [50]
        assert displaced >= 1
    else:
        assert recording.counts("f") == [150]
        assert displaced == 0
    assert recording.one("SELECT coalesce(sum(events), 0) FROM kymo.gaps WHERE cause = 'displaced'") == displaced
    assert recording.overlaps() == 0


@on_every_python
def test_setprofile_and_settrace_see_what_they_would(traced, python):  # noqa: F811
    recording = traced(python, FUNCTIONS + """
        trace.start()
        before = sys.getprofile(), sys.gettrace()
        profiled, lines = [], []
        sys.setprofile(lambda frame, event, arg: profiled.append(event))
        f()
        sys.setprofile(before[0])
        come_back()
        def tracer(frame, event, arg):
            lines.append(event)
            return tracer
        sys.settrace(tracer)
        f()
        sys.settrace(before[1])
        come_back()
        trace.stop()
        print(json.dumps([before, profiled, lines, [sys.getprofile(), sys.gettrace()]]))
        """)
    before, profiled, lines, after = recording.said()
    assert before == after == [None, None]
    # Where ours was set before, the interpreter tells the end of sys.setprofile itself, too.
    assert [e for e in profiled if not e.startswith("c_")] == ["call", "return"]
    assert lines == ["call", "line", "return"]
    assert recording.counts("come_back") == [2]
    assert recording.counts("f") == [3 if by_hooks(python) else 4]
    assert recording.overlaps() == 0


@on_every_python
def test_a_hook_that_was_there_first_is_not_replaced(traced, python):  # noqa: F811
    recording = traced(python, FUNCTIONS + """
        seen = []
        def mine(frame, event, arg):
            seen.append(event)
        sys.setprofile(mine)
        trace.start(c_calls=True)
        f()
        trace.stop()
        still = sys.getprofile() is mine
        sys.setprofile(None)
        print(json.dumps([still, seen.count("call")]))
        """)
    assert recording.said() == [True, 1]


@on_every_python
def test_stop_leaves_a_hook_of_the_program_alone(traced, python):  # noqa: F811
    recording = traced(python, FUNCTIONS + """
        trace.start(lines=True, c_calls=True)
        calls = []
        sys.setprofile(lambda frame, event, arg: calls.append(event))
        trace.stop()
        f()
        sys.setprofile(None)
        print(json.dumps(calls.count("call")))
        """)
    assert recording.said() == 1


@on_every_python
def test_another_tool_of_monitoring_works_beside_us(traced, python):  # noqa: F811
    if VERSIONS[python] < (3, 12):
        pytest.skip("sys.monitoring came with 3.12")
    recording = traced(python, FUNCTIONS + """
        m, seen = sys.monitoring, []
        trace.start()
        for tool in (m.DEBUGGER_ID, m.COVERAGE_ID, m.PROFILER_ID, m.OPTIMIZER_ID):
            m.use_tool_id(tool, "theirs")
        m.register_callback(m.COVERAGE_ID, m.events.PY_START, lambda code, at: seen.append(code.co_name))
        m.set_events(m.COVERAGE_ID, m.events.PY_START)
        f()
        m.set_events(m.COVERAGE_ID, 0)
        trace.stop()
        print(json.dumps([seen, m.get_tool(4)]))
        """)
    assert recording.said() == [["f"], None]
    assert recording.counts("f") == [1]


@on_every_python
def test_a_taken_tool_id_is_a_gap_not_an_error(traced, python):  # noqa: F811
    if VERSIONS[python] < (3, 12):
        pytest.skip("sys.monitoring came with 3.12")
    recording = traced(python, FUNCTIONS + """
        sys.monitoring.use_tool_id(4, "theirs")
        sys.monitoring.use_tool_id(3, "theirs")
        word = trace.start()
        f()
        trace.stop()
        print(json.dumps([word, trace.gaps()["refused"], sys.monitoring.get_tool(4)]))
        """)
    assert recording.said() == ["none", 1, "theirs"]


@on_every_python
def test_threads_begin_with_the_profile_function_that_the_program_chose(traced, python):  # noqa: F811
    recording = traced(python, FUNCTIONS + """
        import threading
        seen = []
        trace.start(c_calls=True)
        threading.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name))
        thread = threading.Thread(target=f)
        thread.start(); thread.join()
        trace.stop()
        print(json.dumps(["f" in seen, callable(threading._profile_hook)]))
        """)
    assert recording.said() == [True, True]


@on_every_python
def test_events_of_an_extension_without_a_code_object_are_passed_over(traced, python):  # noqa: F811
    if VERSIONS[python] < (3, 13):
        pytest.skip("extensions send events from 3.13 on")
    recording = traced(python, """
        try:
            import _testcapi
        except ImportError:
            print(json.dumps(None))
            sys.exit()
        def f():
            pass
        trace.start()
        for event, fire in ((0, _testcapi.fire_event_py_start), (1, _testcapi.fire_event_py_resume)):
            for size in range(1, 200):
                codelike = _testcapi.CodeLike(size)
                _testcapi.monitoring_enter_scope(codelike, event)  # the number of the event's bit
                fire(codelike, 0)
                _testcapi.monitoring_exit_scope()
        f()
        trace.stop()
        print(json.dumps(True))
        """)
    if recording.said() is None:
        pytest.skip("this Python has no _testcapi")
    assert recording.counts("f") == [1]


def test_torch_compile_works_in_a_traced_program(traced):  # noqa: F811
    pytest.importorskip("torch", reason="torch is not installed in .venv: tools/setup test")
    recording = traced(sys.executable, """
        import torch
        from torch._dynamo.utils import counters
        def f(x):
            return torch.sin(x) + torch.cos(x)
        def leaf():
            pass
        x = torch.ones(3)
        trace.start()
        compiled = torch.compile(f, backend="eager")
        results = [compiled(x), compiled(x)]
        for _ in range(10):
            leaf()
        trace.stop()
        print(json.dumps([[torch.equal(r, f(x)) for r in results], dict(counters["frames"])]))
        """)
    assert recording.said() == [[True, True], {"total": 1, "ok": 1}]
    assert recording.counts("leaf") == [10]
    assert recording.overlaps() == 0
