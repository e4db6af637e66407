"""kymo run --lake: flushes while a program runs; kills, and a directory that is gone, full or comes back."""
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import KYMO, NATIVE


@pytest.fixture
def running(place):
    """Starts live_loop under kymo run --lake; it runs until its standard input ends."""
    children = []

    def start(*words, every="0.5", lake="lake", **more):
        env = {**place.env, "KYMO_LAKE_EVERY": every, "KYMO_JOB": "j", **more}
        child = subprocess.Popen([KYMO, "run", "--no-summary", "--lake", lake, *words, "-o", "rec", "--", NATIVE / "live_loop"],
                                 cwd=place.path, env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 text=True, start_new_session=True)
        children.append(child)
        return child

    yield start
    for child in children:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        for pipe in (child.stdin, child.stderr):
            pipe.close()


def until(true, seconds=90):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError("it did not happen in time")


def steps(place, target="lake/j"):
    done = place.kymo("query", "-f", "csv", target, "SELECT count(*) AS n FROM trace.steps", good=False)
    return int(done.stdout.split()[1]) if done.returncode == 0 else 0


def end(child):
    child.stdin.close()
    child.wait(timeout=120)
    return child.stderr.read()


def helper_of(child):
    """The pid of the helper: it has a session of its own, and the collector's pid in its words."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = open(f"/proc/{name}/cmdline", "rb").read().split(b"\0")
            except OSError:
                continue
            if words[1:4] == [b"lake", b"follow", str(child.pid).encode()]:
                return int(name)
    return 0


def test_rows_come_while_the_program_runs_and_all_are_there_at_its_end(place, running):
    child = running()
    first = until(lambda: steps(place))
    until(lambda: steps(place) > first)
    now = place.ask("lake/j", "SELECT pid, state, step FROM kymo.now WHERE step IS NOT NULL")
    assert now and now[0]["state"] == "live"
    said = end(child)
    assert child.returncode == 0, said
    assert "lake: " in said
    assert steps(place) == steps(place, "rec")
    assert place.value("lake/j", "SELECT count(*) FROM host.process") == place.value("rec", "SELECT count(*) FROM host.process")
    assert place.kymo("lake", "check", "lake/j").returncode == 0
    cost = place.ask("lake/j", "SELECT events, total_ns FROM kymo.overhead WHERE source = 'lake'")
    assert cost[0]["events"] >= 2 and cost[0]["total_ns"] > 0
    assert place.value("lake/j", "SELECT count(*) FROM trace.zones") == 0  # of tier 2


def test_all_tables_are_there_with_tier_2(place, running):
    child = running("--lake-tier", "2")
    until(lambda: steps(place))
    end(child)
    assert place.value("lake/j", "SELECT count(*) FROM trace.zones") == place.value("rec", "SELECT count(*) FROM trace.zones") > 0


def test_killing_the_collector_leaves_a_lake_up_to_the_last_flush(place, running):
    child = running()
    seen = until(lambda: steps(place))
    child.kill()
    child.wait()
    assert steps(place) >= seen
    checked = place.kymo("lake", "check", "lake/j", good=False)
    assert re.search(r"pid \d+ of \S+ ran at its last flush, \d+ s ago: rows that came later are not in the lake", checked.stdout)


def test_a_lost_host_leaves_a_lake_that_reads(place, running):
    """SIGKILL of all processes of the host, and its memory and disk are gone."""
    child = running()
    seen = until(lambda: steps(place))
    helper = helper_of(child)
    assert helper
    os.kill(helper, signal.SIGKILL)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for gone in (place.env["KYMO_DIR"], str(place.path / "rec")):
        subprocess.run(["rm", "-rf", gone], check=True)
    os.mkdir(place.env["KYMO_DIR"], 0o700)
    assert steps(place) >= seen
    assert place.kymo("report", "lake/j").returncode == 0


def test_a_lake_that_is_gone_and_comes_back_has_all_rows_and_the_gap(place, running):
    (place.path / "real").mkdir()
    (place.path / "lake").symlink_to("real")
    child = running()
    until(lambda: steps(place))
    os.rename(place.path / "real", place.path / "away")
    (place.path / "real").write_text("no directory")
    before = steps(place, "rec") if (place.path / "rec").exists() else 0
    time.sleep(3)
    assert child.poll() is None
    (place.path / "real").unlink()
    os.rename(place.path / "away", place.path / "real")
    until(lambda: place.kymo("query", "-f", "csv", "lake/j", "SELECT count(*) FROM kymo.flush_gaps", good=False).returncode == 0)
    end(child)
    assert steps(place) == steps(place, "rec") >= before
    gaps = place.ask("lake/j", "SELECT reason, attempts, to_unix_ns - from_unix_ns AS ns FROM kymo.flush_gaps")
    assert gaps and gaps[0]["attempts"] >= 1 and gaps[0]["reason"]


def test_a_lake_that_cannot_be_made_does_not_touch_the_program(place, running):
    (place.path / "file").write_text("")
    child = running(lake="file/lake")
    time.sleep(2)
    assert child.poll() is None
    said = end(child)
    assert child.returncode == 0
    assert "cannot write into the lake" in said and "to add the rest: kymo lake add" in said
    assert steps(place, "rec") > 0


def test_a_killed_helper_is_reported_and_the_rest_can_be_added(place, running):
    child = running()
    until(lambda: steps(place))
    os.kill(helper_of(child), signal.SIGKILL)
    said = end(child)
    assert child.returncode == 0
    assert "kymo lake add rec lake" in said
    place.kymo("lake", "add", "--tier", "1", "rec", "lake")
    assert steps(place) == steps(place, "rec")
