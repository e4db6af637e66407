"""kymo run --python --max-overhead: calls are traced in windows, whose cost has a limit."""
import pytest
from conftest import KYMO, run
from trace_tools import PYTHONS, Traced, on_every_python

LOOP = """
import sys, time

def leaf():
    pass

def loop(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(1000):
            leaf()
"""


@pytest.fixture
def limited(home, tmp_path):
    def go(python, code, budget="1%", status=0):
        script, out = tmp_path / "script.py", tmp_path / "run"
        script.write_text(LOOP + code)
        done = run([KYMO, "run", "--python", "--max-overhead", budget, "-o", out, "--", python, script], home, tmp_path,
                   status)
        return Traced(out, done)
    return go


@on_every_python
def test_a_loop_of_calls_is_recorded_in_windows_and_the_gaps_are_rows(limited, python):
    run = limited(python, "loop(6)")
    calls, = run.counts("leaf")
    assert calls > 0
    wall, paused, gaps = run.query("""SELECT (SELECT duration_ns FROM kymo.runs) AS wall, sum(duration_ns)::BIGINT AS paused,
        count(*) AS gaps FROM kymo.gaps WHERE cause = 'budget'""")[0].values()
    assert gaps >= 1
    assert paused > wall / 2
    assert run.one("SELECT pct FROM kymo.overhead WHERE source = 'python'") < 2
    assert run.overlaps() == 0


@on_every_python
def test_a_program_with_few_calls_is_recorded_whole(limited, python):
    run = limited(python, "for _ in range(20):\n    leaf()\n    time.sleep(0.1)")
    assert run.counts("leaf") == [20]
    assert run.one("SELECT count(*) FROM kymo.gaps WHERE cause = 'budget'") == 0


@on_every_python
def test_threads_are_paused_while_the_main_thread_waits_in_c(limited, python):
    run = limited(python, "import threading\nt = threading.Thread(target=loop, args=(4,))\nt.start()\nt.join()")
    assert run.one("SELECT count(*) FROM kymo.gaps WHERE cause = 'budget'") >= 1
    assert run.one("SELECT pct FROM kymo.overhead WHERE source = 'python'") < 3


@on_every_python
def test_a_forked_child_keeps_to_the_limit(limited, python):
    run = limited(python, """
import os
loop(2)
child = os.fork()
loop(3)
if not child:
    sys.exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    pids = run.column("SELECT pid FROM kymo.gaps WHERE cause = 'budget' GROUP BY pid")
    assert len(pids) == 2


def test_a_region_that_is_open_at_a_pause_keeps_its_duration(limited):
    """Its parents, which are calls, are no rows; it has not become a range."""
    run = limited(PYTHONS[0][0], """
import kymo
def work():
    with kymo.region("whole"):
        loop(4)
work()
""")
    row, = run.query("SELECT duration_ns, thread FROM trace.zones WHERE name = 'whole'")
    assert int(row["duration_ns"]) >= 4_000_000_000
    assert "(ranges)" not in (row["thread"] or "")
    assert run.one("SELECT count(*) FROM trace.open_zones") == 0


def test_other_detail_is_lowered_for_calls_and_each_change_is_a_row(limited):
    run = limited(PYTHONS[0][0], "loop(13)", budget="0.1%")
    rows = run.query("SELECT key, old, new, \"by\" FROM kymo.config WHERE \"by\" LIKE 'budget: overhead % of 0.10 %' ORDER BY ts_ns")
    assert {"native", "sample_rate"} & {row["key"] for row in rows}
    assert all(row["old"] != row["new"] for row in rows)


def test_the_program_ends_as_without_a_limit(limited):
    assert limited(PYTHONS[0][0], "loop(1)\nsys.exit(7)", status=7).one("SELECT count(*) FROM trace.zones") > 0
