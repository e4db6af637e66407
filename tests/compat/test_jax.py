"""Annotations of JAX's profiler and windows of XLA's operations, recorded by `kymo run` without a change.

JAX itself is not needed: a package of its name has the classes that kymo hooks, and an XSpace that is made by hand.
`make doors` has the same with JAX.
"""
import shutil
import sys

import pytest
from marked_home import Marked
from programs import HERE

JAX = """
import types

class TraceMe:
    open = 0
    def __init__(self, name, /, **arguments):
        if not isinstance(name, str):
            raise TypeError("a name is needed")
    def __enter__(self):
        TraceMe.open += 1
        return self
    def __exit__(self, *exception):
        TraceMe.open -= 1

class TraceAnnotation(TraceMe):
    pass

class StepTraceAnnotation(TraceAnnotation):
    def __init__(self, name, **arguments):
        super().__init__(name, _r=1, **arguments)

profiler = types.SimpleNamespace(TraceAnnotation=TraceAnnotation, StepTraceAnnotation=StepTraceAnnotation)
"""
PROFILER = """
import time
import made_xspace

class ProfileOptions:
    pass

class ProfilerSession:
    open = None
    log = []
    def __init__(self, options=None):
        if ProfilerSession.open:
            raise RuntimeError("another session is open")
        ProfilerSession.open, self.start_ns = self, time.time_ns()
        ProfilerSession.log.append("start")
    def stop(self):
        ProfilerSession.open = None
        ProfilerSession.log.append("stop")
        return made_xspace.made(self.start_ns)
"""


@pytest.fixture
def home(tmp_path):
    home = Marked(tmp_path, "KYMO_XLA")
    package = tmp_path / "site/jax/_src/lib"
    package.mkdir(parents=True)
    (tmp_path / "site/jax/__init__.py").write_text(JAX)
    (tmp_path / "site/jax/_src/__init__.py").write_text("")
    (package / "__init__.py").write_text("from jax._src.lib import _profiler")
    (package / "_profiler.py").write_text(PROFILER)
    shutil.copy(HERE / "made_xspace.py", tmp_path / "site")
    home.env["PYTHONPATH"] = str(tmp_path / "site")
    return home


def program(home, text):
    path = home.file.parent / "program.py"
    path.write_text("import jax\nTraceAnnotation = jax.profiler.TraceAnnotation\n"
                    "StepTraceAnnotation = jax.profiler.StepTraceAnnotation\n" + text)
    return [sys.executable, path]


ZONES = "SELECT name, depth, step FROM trace.zones WHERE source = 'xla' AND thread NOT LIKE '%(ranges)' ORDER BY start_ns"


@pytest.mark.parametrize("options", [[], ["--python"], ["--torch"]], ids=["plain", "with calls", "with torch"])
def test_annotations_are_zones_and_steps_are_steps(home, options):
    home.record(*program(home, """
for i in range(2):
    with StepTraceAnnotation("train", step_num=i):
        with TraceAnnotation("inside", size=3, ratio=0.5, kind="dot", more=[1]):
            pass
assert jax.TraceMe.open == 0
"""), options=options)
    outside = 1 if options == ["--python"] else 0  # the module's own zone
    assert home.rows(ZONES) == [{"name": name, "depth": depth + outside, "step": step}
                                for step in (0, 1) for depth, name in enumerate(("train", "inside"))]
    assert home.rows("SELECT DISTINCT name, text FROM trace.zone_text WHERE name NOT LIKE 'gc %' ORDER BY ALL") == [
        {"name": "inside", "text": "size=3 ratio=0.5 kind=dot"}, {"name": "train", "text": "step_num=0"},
        {"name": "train", "text": "step_num=1"}]
    assert home.rows("SELECT step FROM trace.steps ORDER BY step") == [{"step": 0}, {"step": 1}]


def test_the_program_gets_the_exceptions_that_it_gets_without_kymo(home):
    text = """
for wrong in (lambda: TraceAnnotation(3), lambda: TraceAnnotation(), lambda: TraceAnnotation("a", "b")):
    try:
        wrong()
    except TypeError as error:
        print(error)
mark = TraceAnnotation("twice")
with mark as inner:
    assert inner is mark
with mark:
    pass
try:
    with TraceAnnotation("raises"):
        raise ValueError("theirs")
except ValueError as error:
    print(error)
"""
    command = program(home, text)
    assert home.record(*command) == home.run(*command, KYMO="off")
    assert [row["name"] for row in home.rows(ZONES)] == ["twice", "twice", "raises"]


def test_annotations_that_end_out_of_order_are_recorded(home):
    home.record(*program(home, """
def rows():
    with TraceAnnotation("generator"):
        yield 1
        yield 2
made = rows()
with TraceAnnotation("outer"):
    next(made)
made.close()
"""))
    assert home.rows("SELECT name FROM trace.zones WHERE source = 'xla' ORDER BY name") == [
        {"name": "generator"}, {"name": "outer"}]


def test_names_without_end_become_one_and_the_text_has_the_whole(home):
    home.record(*program(home, """
for i in range(5000):
    with TraceAnnotation(f"item {i}"):
        pass
"""))
    assert home.rows("SELECT count(*) AS n, count(DISTINCT name) AS names FROM trace.zones WHERE source = 'xla'") == [
        {"n": 5000, "names": 4097}]
    assert home.rows("SELECT min(text) AS first FROM trace.zone_text WHERE name = 'item ####'") == [{"first": "item 4096"}]


def test_without_the_option_no_session_of_the_profiler_is_opened(home):
    said = home.record(*program(home, """
for i in range(3):
    with StepTraceAnnotation("train", step_num=i):
        pass
from jax._src.lib import _profiler
print(_profiler.ProfilerSession.log)
"""))
    assert said == "[]\n"


WINDOWS = """
for i in range(6):
    with StepTraceAnnotation("train", step_num=i):
        with TraceAnnotation("inside"):
            pass
        time.sleep(0.01)
from jax._src.lib import _profiler
print(len(_profiler.ProfilerSession.log))
"""
OPERATIONS = "SELECT name, file, depth FROM trace.zones WHERE thread LIKE '%(XLA)' AND step = {} ORDER BY ALL"


@pytest.mark.parametrize("option, steps", [("--xla=all", [0, 1, 2, 3, 4, 5]), ("--xla=2", [1, 3, 5]), ("--xla", [1])])
def test_operations_of_windows_are_zones_of_their_step(home, option, steps):
    said = home.record(*program(home, "import time\n" + WINDOWS), options=[option])
    assert said == f"{2 * len(steps)}\n"
    assert home.rows("SELECT DISTINCT step FROM trace.zones WHERE thread LIKE '%(XLA)' ORDER BY 1") == [
        {"step": step} for step in steps]
    got = [(row["name"], row["file"], row["depth"]) for row in home.rows(OPERATIONS.format(steps[0]))]
    assert got == [("copy.1", None, 0), ("dot.3", "jit_step", 0), ("dot.3", "jit_step", 1), ("tanh_fusion", "jit_step", 0)]
    assert home.rows("SELECT DISTINCT source, thread FROM trace.zones WHERE thread LIKE '%(XLA)' ORDER BY thread") == [
        {"source": "xla", "thread": "GPU:0 XLA Ops (XLA)"}, {"source": "xla", "thread": "tf_XLAEigen/1 (XLA)"}]


def test_operations_have_the_times_of_the_recording_and_are_in_the_totals(home):
    home.record(*program(home, "import time\n" + WINDOWS), options=["--xla=all"])
    rows = home.rows("""
        SELECT o.name, count(*) AS n, bool_and(o.start_ns BETWEEN t.start_ns - 5000000 AND t.start_ns + t.duration_ns) AS inside,
            max(abs(o.duration_ns - CASE o.depth WHEN 1 THEN 20000 ELSE 30000 END)) <= 100 AS exact
        FROM trace.zones o JOIN trace.zones t ON t.name = 'train' AND t.step = o.step WHERE o.name = 'dot.3' GROUP BY 1""")
    assert rows == [{"name": "dot.3", "n": 12, "inside": True, "exact": True}]
    assert home.rows("SELECT name, count FROM trace.regions WHERE name IN ('dot.3', 'tanh_fusion') ORDER BY 1") == [
        {"name": "dot.3", "count": 12}, {"name": "tanh_fusion", "count": 6}]
    assert home.rows("SELECT count(*) AS n FROM kymo.processes WHERE pid IN (SELECT pid FROM trace.zones)") == [{"n": 1}]


def test_a_session_of_the_program_ends_the_window_and_finds_none_open(home):
    said = home.record(*program(home, """
from jax._src.lib import _profiler
for i in range(3):
    with StepTraceAnnotation("train", step_num=i):
        if i == 1:
            session = _profiler.ProfilerSession()
            assert len(session.stop()) > 100
print(_profiler.ProfilerSession.log)
"""), options=["--xla=all"])
    assert said == str(["start", "stop"] * 4) + "\n"
    assert home.rows("SELECT DISTINCT step FROM trace.zones WHERE thread LIKE '%(XLA)' ORDER BY 1") == [{"step": 0}, {"step": 2}]
    assert home.rows("SELECT text FROM trace.marks WHERE name = 'kymo.xla'") == [
        {"text": "a window ended early: the program profiles itself"}]


def test_an_answer_that_is_no_xspace_leaves_the_recording_whole(home):
    home.record(*program(home, """
from jax._src.lib import _profiler
made = [b"", b"\\xff" * 100, None]
_profiler.ProfilerSession.stop = lambda self: [made.pop(), setattr(_profiler.ProfilerSession, "open", None)][0]
for i in range(3):
    with StepTraceAnnotation("train", step_num=i):
        pass
"""), options=["--xla=all"])
    assert home.rows("SELECT count(*) AS n FROM trace.zones WHERE name = 'train'") == [{"n": 3}]


def test_a_forked_child_opens_no_session(home):
    said = home.record(*program(home, """
import os
with StepTraceAnnotation("first"):
    pass
child = os.fork()
if not child:
    from jax._src.lib import _profiler
    before = len(_profiler.ProfilerSession.log)
    for i in range(3):
        with StepTraceAnnotation("in the child"):
            pass
    os._exit(len(_profiler.ProfilerSession.log) - before)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""), options=["--xla=all"])
    assert said == "0\n"
