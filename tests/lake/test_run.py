"""kymo run --lake: flushes while a program runs; kills, and a directory that is slow, full or gone, and comes back."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import KYMO, NATIVE, ROOT

sys.path.append(str(ROOT / "tests/crash"))
from mounts import CAN_MOUNT, UNSHARE  # noqa: E402


@pytest.fixture
def running(place):
    """Starts live_loop under kymo run --lake; it runs until its standard input ends."""
    children = []

    def start(*words, every="0.5", lake="lake", before=(), **more):
        env = {**place.env, "KYMO_LAKE_EVERY": every, "KYMO_JOB": "j", **more}
        options = ["--no-summary", "--lake", lake, *words, "-o", "rec"]
        child = subprocess.Popen([*before, KYMO, "run", *options, "--", NATIVE / "live_loop"],
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
            with contextlib.suppress(BrokenPipeError):
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


def test_now_follows_each_process(place, running):
    def now():
        return (place.ask("lake/j", "SELECT pid, rank, state, step, zone, since_ns, lost, written_unix_ns AS written FROM kymo.now "
                          "WHERE step IS NOT NULL") if (place.path / "lake/kymo.now").exists() else [])

    child = running(RANK="2", WORLD_SIZE="4")
    (first,) = until(now)
    assert (first["rank"], first["state"], first["lost"]) == (2, "live", 0)
    (later,) = until(lambda: [row for row in now() if row["step"] > first["step"] and row["written"] > first["written"]])
    assert later["pid"] == first["pid"]
    child.stdin.write("stay\n")
    child.stdin.flush()
    (stuck,) = until(lambda: [row for row in now() if row["zone"] == "stuck in a zone"])
    (still,) = until(lambda: [row for row in now() if row["written"] > stuck["written"]])
    # It has been in that zone since one moment (clocks are compared anew each time), and takes no further step.
    assert (still["zone"], still["step"]) == (stuck["zone"], stuck["step"])
    assert abs(still["since_ns"] - stuck["since_ns"]) < 1_000_000
    assert len(list((place.path / "lake/kymo.now/run=j").iterdir())) == 1


def test_a_lake_that_does_not_answer_holds_neither_the_program_nor_its_end(place, running):
    """Helper and flush stand still, as a process does whose file system waits for a server."""
    child = running(KYMO_LAKE_WAIT="1")
    until(lambda: steps(place))
    helper = helper_of(child)
    os.killpg(helper, signal.SIGSTOP)
    try:
        seen = steps(place)
        said = end(child)
        assert child.returncode == 0
        assert "the lake lake is slow; the last rows are being written in the background" in said
        assert steps(place) == seen
    finally:
        os.killpg(helper, signal.SIGCONT)
    whole = steps(place, "rec")
    until(lambda: steps(place) == whole)
    until(lambda: place.kymo("lake", "check", "lake/j", good=False).returncode == 0)


@pytest.fixture
def small(place):
    """The lake is a file system of 4 MB in a mount namespace; a prefix that runs a command there, and the folder as seen from here."""
    if not CAN_MOUNT or not shutil.which("nsenter"):
        pytest.skip("mounting a small tmpfs needs root (unshare -m, mount, nsenter)")
    (place.path / "lake").mkdir()
    script = "mount -t tmpfs -o size=4m,mode=700 none lake && echo mounted && exec sleep 300"
    holder = subprocess.Popen([*UNSHARE, "sh", "-c", script], cwd=place.path, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "mounted\n"
    # With its root directory, which is another one than that of the namespace where the tests run in a chroot.
    yield (["nsenter", "-t", str(holder.pid), "-m", "-r", "sh", "-c", 'cd "$0" && exec "$@"', str(place.path)],
           pathlib.Path(f"/proc/{holder.pid}/root{place.path}/lake"))
    holder.kill()
    holder.wait()
    holder.stdout.close()


def fill(file):
    with contextlib.suppress(OSError), open(file, "wb", buffering=0) as out:
        while out.write(bytes(4096)) == 4096:
            pass


def test_a_full_lake_gets_all_rows_when_there_is_room_and_the_gap_is_a_row(place, running, small):
    prefix, seen = small

    def ask(target, sql):
        done = subprocess.run([*prefix, KYMO, "query", "-f", "csv", target, sql], env=place.env, capture_output=True, text=True)
        return done.stdout.split()[1:] if done.returncode == 0 else []

    def has_gap():
        fill(seen / "filler")
        time.sleep(2)
        assert child.poll() is None
        (seen / "filler").unlink()
        time.sleep(1)
        return (seen / "kymo.flush_gaps").exists()

    child = running(before=prefix)
    until(lambda: (seen / "trace.steps").exists())
    until(has_gap)
    said = end(child)
    assert child.returncode == 0, said
    assert "No space left on device" in " ".join(ask("lake/j", "SELECT reason FROM kymo.flush_gaps"))
    assert ask("lake/j", "SELECT min(attempts) >= 1 AND min(to_unix_ns - from_unix_ns) >= 0 AS good FROM kymo.flush_gaps") == ["true"]
    sql = "SELECT concat_ws(' ', count(*), min(step), max(step)) AS n FROM trace.steps"
    assert ask("lake/j", sql) == ask("rec", sql) != []
    assert not list(seen.glob(".*.part"))


def test_rows_that_were_overwritten_before_a_flush_are_counted_as_lost(place):
    place.env["KYMO_RING_ROWS"] = "1000"
    place.kymo("run", "-q", "--keep", "flight", "-o", "rec", "--", NATIVE / "run_rows", "50000")
    place.kymo("lake", "add", "--run", "a", "rec", "lake")
    sql = """SELECT sum(emitted)::INT, sum(in_lake)::INT, sum(lost)::INT, sum(dropped + waiting)::INT FROM kymo.flushes
        WHERE table_name = 'trace.zones'"""
    emitted, kept, lost, other = place.ask("lake/a", sql)[0].values()
    assert emitted == kept + lost and lost > 0 and other == 0
    assert kept == place.value("lake/a", "SELECT count(*) FROM trace.zones") == place.value("rec", "SELECT count(*) FROM trace.zones")
    assert place.kymo("lake", "check", "lake/a").returncode == 0
