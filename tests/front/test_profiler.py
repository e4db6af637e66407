"""`python -m kymo -p`: only what a Profiler or the fixture turns on."""
import subprocess
import sys

import pytest
from recorded import calls, last_line

FUNCTIONS = """
from kymo import Profiler

def child():
    pass

def parent():
    child()

def other():
    pass

profiler = Profiler()
"""


def partial(front, code, **options):
    return calls(front("-p", code=FUNCTIONS + code, **options), "%/program.py")


def test_what_is_between_enable_and_disable_is_recorded(front):
    assert partial(front, "other()\nprofiler.enable()\nparent()\nprofiler.disable()\nother()\n") == {"parent": 1, "child": 1}


def test_it_is_a_context_manager_and_may_be_used_again(front):
    code = "with profiler as same:\n    parent()\nassert same is profiler\nother()\nwith Profiler():\n    child()\n"
    assert partial(front, code) == {"parent": 1, "child": 2}


def test_nested_uses_end_with_the_outermost(front):
    assert partial(front, """
with profiler:
    with profiler, Profiler():
        child()
    parent()
other()
Profiler().enable()
child()
Profiler().disable()
other()
""") == {"child": 3, "parent": 1}


def test_a_disable_too_many_does_nothing(front):
    assert partial(front, "profiler.disable()\nprofiler.disable()\nwith profiler:\n    child()\nprofiler.disable()\nother()\n"
                   ) == {"child": 1}


def test_an_exception_ends_it_too(front):
    assert partial(front, """
try:
    with profiler:
        child()
        1 / 0
except ZeroDivisionError:
    other()
""") == {"child": 1}


def test_enable_inside_a_function_records_what_it_calls(front):
    assert partial(front, """
def inside():
    other()
    profiler.enable()
    parent()
inside()
profiler.disable()
other()
""") == {"parent": 1, "child": 1}


def test_it_sees_all_threads(front):
    assert partial(front, """
import threading
ready, go, done = threading.Event(), threading.Event(), threading.Event()
def work():
    ready.set()
    go.wait()
    parent()
    done.set()
threading.Thread(target=work).start()
ready.wait()
with profiler:
    go.set()
    done.wait()
""") == {"parent": 1, "child": 1}


def test_nothing_recorded_is_said_and_why(front):
    recording = front("-p", code=FUNCTIONS + "parent()\n")
    assert last_line(recording) == ("kymo: no calls recorded: the program enabled no kymo.Profiler, and no test used the "
                                    "fixture kymo_profile or tracy_profile")
    assert calls(recording) == {}


def test_in_a_whole_program_run_it_changes_nothing(front):
    recording = front(code=FUNCTIONS + "other()\nwith profiler:\n    parent()\nprofiler.disable()\nother()\n")
    assert calls(recording, "%/program.py") == {"<module>": 1, "other": 2, "parent": 1, "child": 1}


def test_without_the_front_it_does_nothing(front):
    script = front.write(FUNCTIONS + "profiler.enable()\nparent()\nprofiler.disable()\nprofiler.disable()\nprint('done')\n")
    done = subprocess.run([sys.executable, script], env=front.env, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("done\n", "")
    assert list((front.path / "live").iterdir()) == []


def test_lines_are_zones_with_file_and_line(front):
    """Those of what is called, and the remaining ones of the code that enables it."""
    recording = front("-p", "-l", code="""
        from kymo import Profiler
        def f():
            x = 1
            for _ in range(2):
                x += 1
            return x
        with Profiler():
            f()
    """)
    rows = recording.query("SELECT line, count(*) AS n FROM trace.zones WHERE source = 'line' AND file LIKE '%/program.py' "
                           "GROUP BY line ORDER BY line")
    assert rows == [{"line": 4, "n": 1}, {"line": 5, "n": 3}, {"line": 6, "n": 2}, {"line": 7, "n": 1},
                    {"line": 8, "n": 1}, {"line": 9, "n": 1}]


def test_coverage_beside_recorded_lines_finds_the_lines_that_it_finds_alone(front):
    """Both start and stop inside the other, as in test suites of such tools."""
    pytest.importorskip("coverage", reason="no coverage in this Python")
    code = """
        import coverage
        from kymo import Profiler
        def f(n):
            if n:
                return n
            return 0
        def covered():
            tool = coverage.Coverage(data_file=None)
            tool.start()
            with Profiler():
                f(1)
            tool.stop()
            return sorted(tool.get_data().lines(__file__))
        print(covered(), end=" ")
        with Profiler():
            print(covered())
    """
    plain = subprocess.run([sys.executable, front.write(code)], env=front.env, capture_output=True, text=True, check=True)
    assert front("-p", "-l", code=code).stdout == plain.stdout and "5, 6" in plain.stdout


def test_c_functions_have_their_own_names(front):
    recording = front("--c-calls", code="""
        def f():
            return sum(range(10)), len("abc")
        f()
    """)
    names = recording.column("SELECT DISTINCT name FROM trace.zones WHERE source IN ('c', 'python')")
    assert {"f", "sum", "len"} <= {name.split(".")[-1] for name in names}


# --- pytest -------------------------------------------------------------------------------------------------------

TESTS = """
import pytest

@pytest.fixture
def before():
    set_up()
    yield
    tear_down()

def set_up():
    pass

def tear_down():
    pass

def work():
    pass

def test_first(kymo_profile, before):
    work()

def test_last(before, kymo_profile):
    work()

def test_middle(before, tracy_profile, request):
    work()

def test_without(before):
    work()
"""


def pytest_words(*more):
    return ["-m", "pytest", "-q", "-p", "no:cacheprovider", *more]


def test_the_fixture_brackets_the_call_whatever_the_order_of_arguments(front):
    front.write(TESTS, "test_it.py")
    recording = front("-p", *pytest_words("test_it.py"))
    assert "4 passed" in recording.stdout
    assert calls(recording, "%/test_it.py") == {"test_first": 1, "test_last": 1, "test_middle": 1, "work": 3}


@pytest.mark.parametrize("by", ["-p", "pytest_plugins"])
def test_naming_the_plugin_again_is_no_error(front, by):
    """pytest knows it by its entry point already."""
    front.write(TESTS, "test_it.py")
    if by == "pytest_plugins":
        front.write('pytest_plugins = ["kymo._pytest"]\n', "conftest.py")
    more = ["-p", "kymo._pytest"] if by == "-p" else []
    recording = front("-pl", *pytest_words(*more, "test_it.py"))
    assert "4 passed" in recording.stdout
    assert calls(recording, "%/test_it.py")["work"] == 3


def test_every_test_and_every_fixture_is_a_zone(front):
    front.write("""
        import pytest

        @pytest.fixture(scope="module")
        def shared():
            return 1

        @pytest.mark.parametrize("n", [1, 3000])
        def test_sizes(shared, n):
            pass

        class TestClass:
            def test_method(self, shared, tmp_path):
                pass
    """, "test_it.py")
    sql = "SELECT name, count FROM trace.regions WHERE name LIKE '%::%' OR name LIKE 'fixture %' ORDER BY name"
    whole = front(*pytest_words("test_it.py")).query(sql)
    assert [tuple(row.values()) for row in whole if row["name"] not in ("fixture tmp_path_factory",)] == [
        ("fixture shared", 1), ("fixture tmp_path", 1), ("test_it.py::TestClass::test_method", 1), ("test_it.py::test_sizes[1]", 1),
        ("test_it.py::test_sizes[3000]", 1)]
    assert list(front("-p", *pytest_words("test_it.py")).query(sql)) == [], "-p is about what is asked for"


def test_of_an_empty_test_only_itself_is_recorded(front):
    front.write("def test_empty(kymo_profile):\n    pass\n", "test_it.py")
    assert calls(front("-p", *pytest_words("test_it.py"))) == {"test_empty": 1}


def test_only_what_the_test_calls_is_recorded_for_methods_too(front):
    front.write("""
        import unittest, pytest
        def work():
            pass
        class TestPlain:
            def setup_method(self):
                work()
            def test_it(self, kymo_profile):
                work()
        @pytest.mark.usefixtures("kymo_profile")
        class TestUnit(unittest.TestCase):
            def setUp(self):
                work()
            def test_other(self):
                work()
    """, "test_it.py")
    found = calls(front("-p", *pytest_words("test_it.py")))
    assert {name.split(".")[-1]: n for name, n in found.items()} == {"test_it": 1, "test_other": 1, "work": 2}


def test_a_failure_is_shown_as_without_the_fixture(front):
    """The same lines but for the name of the fixture: our function that is in between is not one of them."""
    text = "def work():\n    assert 1 == 2\n\ndef test_it({}):\n    work()\n"
    front.write(text.format("kymo_profile"), "test_it.py")
    shown = front("-p", *pytest_words("test_it.py"), status=1).stdout
    front.write(text.format("request"), "test_it.py")
    plain = front("-p", *pytest_words("test_it.py"), status=1).stdout

    def lines(out):
        return [line for line in out.splitlines() if line.startswith((">", "E ", "test_it.py"))]
    assert lines(shown) == lines(plain) != []


def test_the_fixture_ends_with_a_test_that_fails(front):
    front.write(TESTS + "\ndef test_bad(kymo_profile):\n    work()\n    assert False\n", "test_it.py")
    recording = front("-p", *pytest_words("test_it.py::test_bad", "test_it.py::test_without"), status=1)
    assert calls(recording, "%/test_it.py") == {"test_bad": 1, "work": 1}


def test_a_method_of_unittest_is_bracketed_too(front):
    front.write("""
        import unittest, pytest
        def work():
            pass
        @pytest.mark.usefixtures("kymo_profile")
        class Tests(unittest.TestCase):
            def setUp(self):
                pass
            def test_it(self):
                work()
    """, "test_it.py")
    recording = front("-p", *pytest_words("test_it.py"))
    found = calls(recording, "%/test_it.py")
    assert found["Tests.test_it" if "Tests.test_it" in found else "test_it"] == 1 and found["work"] == 1


def test_the_fixture_is_a_no_op_without_the_front(front):
    front.write(TESTS, "test_it.py")
    done = subprocess.run([sys.executable, *pytest_words("test_it.py")], env=front.env, cwd=front.path, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0 and "4 passed" in done.stdout
    assert list((front.path / "live").iterdir()) == []


def test_with_xdist_its_workers_are_recorded(front):
    pytest.importorskip("xdist", reason="no pytest-xdist in this Python")
    front.write(TESTS, "test_it.py")
    recording = front("-p", *pytest_words("-n", "2", "test_it.py"))
    assert calls(recording, "%/test_it.py") == {"test_first": 1, "test_last": 1, "test_middle": 1, "work": 3}


# --- windows ------------------------------------------------------------------------------------------------------

STEPS = """
import kymo

def work(n):
    globals()[f"work{n}"] = None

for i in range(6):
    kymo.step()
    kymo.signpost(f"post {i}")
    exec(f"def work{i}(): pass\\nwork{i}()")
kymo.step_end()
"""


@pytest.mark.parametrize("words, found", [
    (["--skip", "2"], "2345"), (["--take", "2"], "01"), (["--skip", "2", "--take", "3"], "234"),
    (["--from", "post 1", "--to", "post 4"], "123"), (["--from", "post 4"], "45"), (["--to", "post 2"], "01"),
    (["--skip", "5", "--take", "1"], "5"),
])
def test_a_window_of_steps_or_signposts(front, words, found):
    recording = front(*words, code=STEPS)
    names = recording.column("SELECT DISTINCT name FROM trace.zones WHERE name LIKE 'work_' ORDER BY name")
    assert names == [f"work{n}" for n in found]
    assert recording.one("SELECT count(*) FROM trace.steps") == 6


C_STEPS = """
import ctypes

(path,) = {line.split()[-1] for line in open("/proc/self/maps") if "libkymo.so" in line}
library = getattr(ctypes, "KIND")(path)

def call(function, name):
    function(name)
    for _ in range(1000):  # a thread without the GIL leaves it to the main thread, soon
        pass

for i in range(6):
    call(library.kymo_step, None)
    call(lambda name: library.kymo_mark(name, None), b"post %d" % i)
    exec(f"def work{i}(): pass\\nwork{i}()")
library.kymo_step_end(None)
"""


@pytest.mark.parametrize("kind", ["PyDLL", "CDLL"])  # with the GIL and without
@pytest.mark.parametrize("words, found", [(["--skip", "2", "--take", "3"], "234"), (["--from", "post 1", "--to", "post 4"], "123")])
def test_steps_and_marks_of_c_count_too(front, words, found, kind):
    recording = front(*words, code=C_STEPS.replace("KIND", kind))
    assert recording.column("SELECT DISTINCT name FROM trace.zones WHERE name LIKE 'work_' ORDER BY name") == [
        f"work{n}" for n in found]


def test_steps_of_torch_count_too(front):
    pytest.importorskip("torch", reason="no torch in this Python")
    recording = front("--skip", "1", "--take", "2", code="""
        import torch
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(5):
            exec(f"def work{i}(): pass\\nwork{i}()")
            model(torch.ones(3, 2)).sum().backward()
            optimizer.step()
    """)
    assert recording.column("SELECT DISTINCT name FROM trace.zones WHERE name LIKE 'work_' ORDER BY name") == ["work1", "work2"]


@pytest.mark.parametrize("words, why", [
    (["--skip", "6"], "the program made fewer than 7 steps (kymo.step, kymo_step or optimizer steps)"),
    (["--from", "nowhere"], 'the program set no signpost "nowhere"'),
])
def test_a_window_that_never_opens_is_said(front, words, why):
    assert last_line(front(*words, code=STEPS)) == f"kymo: no calls recorded: {why}"
