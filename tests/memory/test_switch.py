"""On and off from outside, in programs that were not started with --memory."""
import contextlib
import os
import subprocess
import sys

from conftest import KYMO, PACKAGE, PROGS, PYTHON, ROOT
from test_ways_in import kinds, until

sys.path.append(str(ROOT / "tests"))
from running import program  # noqa: E402

POLLED = PROGS / "memory_polled"
CHANGED, BEGAN, ENDED = 4, 5, 6
REDIRECTED = "calls redirected (missed: constructors of libraries loaded later)"


@contextlib.contextmanager
def running(lab, *command, **env):
    """The pid of a program, which says it, until the block is left."""
    with program(command, env={**lab.env, **env}, cwd=lab.home) as process:
        yield int(process.first_line)


def config(lab, target, *words):
    done = subprocess.run([KYMO, "config", str(target), *words], env=lab.env, cwd=lab.home, capture_output=True, text=True,
                          check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def switch(lab, target, *words):
    """What it says, where it can be done; on a busy machine it may add that it is not done yet."""
    status, said, _ = config(lab, target, *words)
    return status, said


def sources(lab, target):
    return [row["source"] for row in
            lab.ask(str(target), "SELECT source FROM alloc.timeline WHERE live_bytes > 0 GROUP BY source ORDER BY min(ts_ns)")]


def test_a_program_that_polls_is_turned_on_off_and_on_again(lab):
    with running(lab, POLLED, "poll", KYMO="on") as pid:
        assert switch(lab, pid, "memory=on") == (0, "memory=on (was off)\n")
        until(lambda: kinds(lab, str(pid)).get(0, 0) > 10)
        assert switch(lab, pid, "memory=off") == (0, "memory=off (was on)\n")
        until(lambda: kinds(lab, str(pid)).get(ENDED) == 1)
        assert switch(lab, pid, "memory=on") == (0, "memory=on (was off)\n")
        until(lambda: kinds(lab, str(pid)).get(BEGAN) == 2)
        sites = lab.ask(str(pid), "SELECT site FROM alloc.sites WHERE allocated_bytes > 100000")
        assert [row["site"] for row in sites] == ["serve"]
        assert sources(lab, pid) == ["malloc, sampled, " + REDIRECTED]


def test_all_and_samples_are_changed_without_an_end(lab):
    with running(lab, POLLED, "poll", KYMO="on") as pid:
        assert switch(lab, pid, "memory=exact") == (0, "memory_exact=on (was off)\nmemory=on (was off)\n")
        until(lambda: kinds(lab, str(pid)).get(0, 0) > 10)
        assert switch(lab, pid, "memory=sampled") == (0, "memory_exact=off (was on)\nmemory=on (unchanged)\n")
        until(lambda: "malloc, sampled, " + REDIRECTED in sources(lab, pid))
        assert sources(lab, pid) == ["malloc, exact, " + REDIRECTED, "malloc, sampled, " + REDIRECTED]
        seen = kinds(lab, str(pid))
        assert (seen[BEGAN], seen[CHANGED], seen.get(ENDED)) == (1, 1, None)


def test_a_program_on_standby_records_allocations_alone(lab):
    with running(lab, POLLED, "poll", KYMO="standby") as pid:
        switch(lab, pid, "memory=on")
        until(lambda: kinds(lab, str(pid)).get(0, 0) > 10)
        switch(lab, pid, "memory=off")
        until(lambda: kinds(lab, str(pid)).get(ENDED) == 1)
        assert lab.ask(str(pid), "SELECT count(*) AS n FROM trace.zones")[0]["n"] == 0


def test_where_nothing_can_be_loaded_it_is_refused_and_nothing_changes(lab):
    with running(lab, POLLED, KYMO="on") as pid:
        assert config(lab, pid, "memory=on") == (
            1, "", (f"kymo config: pid {pid} cannot record allocations: it was started without libkymo_memory.so and never calls "
            "kymo_poll(), which could load it; start it with kymo run --memory=off -- … to turn memory on later\n"))
        assert config(lab, pid, "memory") == (0, "off\n", "")


def test_started_ready_any_program_is_turned_on_at_its_next_allocation(lab):
    path = lab.home / "ready"
    with running(lab, KYMO, "run", "-q", "-o", path, "--memory=off", "--", POLLED) as pid:
        assert kinds(lab, path) == {}
        assert switch(lab, pid, "memory=exact")[0] == 0
        until(lambda: kinds(lab, path).get(0, 0) > 10)
        assert switch(lab, pid, "memory=off")[0] == 0
        until(lambda: kinds(lab, path).get(ENDED) == 1)


STEPS = """
import os, select, sys
import kymo
print(os.getpid(), flush=True)
def batch():
    return bytearray(100_000)
while not select.select([sys.stdin], [], [], .001)[0]:
    with kymo.region("work"):
        batch()
"""

COLLECTIONS = """
import gc, os, select, sys
rings = []
def tie():
    for _ in range(3000):
        ring = []
        ring.append(ring)
def batch():
    return bytearray(100_000)
for _ in range(100):
    tie()
print(os.getpid(), flush=True)
while not select.select([sys.stdin], [], [], .001)[0]:
    tie()
    batch()
"""


def lines_of(lab, target, program):
    return {row["site"] for row in lab.ask(target, f"SELECT site FROM alloc.allocations WHERE size > 90000 AND site LIKE '{program}%'")}


def test_python_hears_of_it_in_its_regions_and_names_lines(lab):
    program = lab.home / "regions.py"
    program.write_text(STEPS)
    with running(lab, PYTHON, program, KYMO="on", PYTHONPATH=os.fspath(PACKAGE)) as pid:
        assert switch(lab, pid, "memory=on") == (0, "memory=on (was off)\n")
        until(lambda: lines_of(lab, str(pid), "regions") == {"regions.py:6"})
        assert switch(lab, pid, "memory=off") == (0, "memory=off (was on)\n")


def test_python_that_has_never_heard_of_kymo_hears_of_it_in_its_garbage_collections(lab):
    program, path = lab.home / "rings.py", lab.home / "rings"
    program.write_text(COLLECTIONS)
    with running(lab, KYMO, "run", "-q", "-o", path, "--", PYTHON, program) as pid:
        until(lambda: config(lab, pid, "memory")[1] == "off\n")
        assert switch(lab, pid, "memory=on")[0] == 0
        until(lambda: lines_of(lab, path, "rings") == {"rings.py:9"})


def test_the_environment_turns_it_on_in_a_python_that_nobody_preloads_for(lab):
    program = lab.home / "asked.py"
    program.write_text("import kymo._auto\nkymo._auto.start()\n" + STEPS)
    with running(lab, PYTHON, program, KYMO="on", KYMO_MEMORY="on", PYTHONPATH=os.fspath(PACKAGE)) as pid:
        until(lambda: lines_of(lab, str(pid), "asked") == {"asked.py:8"})
        assert sources(lab, pid) == ["malloc, sampled, " + REDIRECTED]
