"""Collectors that are stopped, that are two, and that watch a program in namespaces of its own."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
PROGS = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()
STOPPED_SECONDS = float(os.environ.get("KYMO_TEST_STOP_SECONDS", 5))  # 60: the whole minute
PER_MS = 200  # rows of run_rows
UNSHARE = ["unshare", "-Urpf", "--mount-proc", "--kill-child"]

sys.path.append(str(ROOT / "tests"))
from running import program, until  # noqa: E402


class Kymo:
    def __init__(self, home):
        self.home, self.live = home, home / "live"
        self.live.mkdir(mode=0o700)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}
        self.env.update(KYMO_DIR=str(self.live), XDG_STATE_HOME=str(home / "state"), HOME=str(home), LC_ALL="C.UTF-8",
                        TZ="UTC", KYMO_QUIET="1")

    def __call__(self, *words, timeout=60):
        return subprocess.run([KYMO, *map(str, words)], env=self.env, cwd=self.home, capture_output=True, text=True, check=False,
                              timeout=timeout, stdin=subprocess.DEVNULL)

    def rows(self, target, sql):
        done = self("query", "-f", "json", target, sql)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def running(self, *command, **env):
        return program(command, cwd=self.home, env={**self.env, **env})

    def start(self, *words, **options):
        return subprocess.Popen([KYMO, *map(str, words)], env=self.env, cwd=self.home, stdin=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, **options)


@pytest.fixture
def kymo(tmp_path):
    return Kymo(tmp_path)


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextlib.contextmanager
def stopped(process):
    process.send_signal(signal.SIGSTOP)
    until(lambda: state(process.pid) == "T")
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


# --- a collector that is stopped --------------------------------------------------------------------------------

SUMS = """SELECT sum(emitted)::BIGINT AS emitted, sum(kept)::BIGINT AS kept, sum(overwritten)::BIGINT AS overwritten,
    sum(dropped)::BIGINT AS dropped, (SELECT count(*) FROM trace.zones) AS zones,
    (SELECT sum(count)::BIGINT FROM trace.regions WHERE name = 'row') AS total
    FROM kymo.streams WHERE table_name = 'trace.zones'"""


def test_a_collector_that_is_stopped_costs_the_program_nothing_and_every_row_is_accounted_for(kymo):
    count = int((STOPPED_SECONDS + 2) * 1000 * PER_MS)
    run = kymo.start("run", "-q", "-o", "there", "--", PROGS / "run_rows", count, PER_MS, stdout=subprocess.PIPE)
    target = until(lambda: children(run.pid))[0]
    until(lambda: kymo("query", "there", "FROM trace.zones LIMIT 1").returncode == 0)
    with stopped(run):
        end = time.monotonic() + STOPPED_SECONDS
        before = kymo.rows("there", SUMS)[0]["emitted"]
        # It is never left stopped; a zombie has ended, and only its parent has not noticed.
        while time.monotonic() < end:
            assert state(target) in "RSDZ"
            time.sleep(0.2)
        until(lambda: state(target) == "Z" or kymo.rows("there", SUMS)[0]["emitted"] > before)
    said, err = run.communicate(timeout=120)
    assert (run.returncode, said, err) == (0, f"{count}\n", "")
    sums, = kymo.rows("there", SUMS)
    assert sums["emitted"] == count
    assert sums["emitted"] == sums["kept"] + sums["overwritten"] + sums["dropped"]
    assert sums["zones"] == sums["kept"], "what is counted as kept can be read"
    assert sums["total"] == count, "totals do not depend on the collector"


def test_an_attached_collector_that_is_stopped_leaves_the_program_running(kymo):
    with kymo.running(PROGS / "probe_loop", KYMO="on") as target:
        watcher = kymo.start("attach", target.pid)
        until(lambda: kymo.rows(target.pid, "SELECT count(*) AS n FROM host.process")[0]["n"])
        with stopped(watcher):
            zones = kymo.rows(target.pid, "SELECT count(*) AS n FROM trace.zones")[0]["n"]
            until(lambda: kymo.rows(target.pid, "SELECT count(*) AS n FROM trace.zones")[0]["n"] > zones + 10)
            assert state(target.pid) in "RSD"
            assert kymo("backtrace", target.pid).returncode == 0
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(30) == 0
        watcher.stderr.close()
        assert state(target.pid) in "RSD"
    assert target.returncode == 0


# --- two collectors at once ---------------------------------------------------------------------------------------

# A sample belongs to one moment of one process: two collectors would write it twice.
TWICE = "SELECT count(*) AS n FROM (SELECT pid, ts_ns FROM host.process GROUP BY ALL HAVING count(*) > 1)"


@pytest.mark.parametrize("records", [True, False], ids=["a program that records", "one that does not"])
def test_of_two_collectors_that_start_together_one_watches(kymo, records):
    command = [PROGS / "probe_loop"] if records else ["sh", "-c", "echo begun; exec cat"]
    with kymo.running(*command, **({"KYMO": "on"} if records else {})) as target:
        both = [kymo.start("attach", "--duration", "20", target.pid) for _ in range(2)]
        try:
            until(lambda: any(one.poll() is not None for one in both), 30)
            time.sleep(0.5)
            over = [one for one in both if one.poll() is not None]
            assert len(over) == 1, "one refuses, one watches"
            # Which of them depends on how far the other one is.
            assert over[0].stderr.read().startswith((f"kymo: process {target.pid} is already recorded by kymo (pid ",
                                                     f"kymo attach: another kymo attach already records process {target.pid}"))
            assert len(list(kymo.live.iterdir())) == 1, "one recording"
            until(lambda: kymo.rows(next(kymo.live.iterdir()), "SELECT count(*) AS n FROM host.process")[0]["n"] > 2)
            assert kymo.rows(next(kymo.live.iterdir()), TWICE) == [{"n": 0}]
        finally:
            for one in both:
                one.terminate()
                one.wait(30)
                one.stderr.close()
        assert state(target.pid) in "RSD"


def test_a_run_inside_a_run_records_no_row_twice(kymo):
    command = [KYMO, "run", "-q", "-o", "outer", "--", KYMO, "run", "-q", "-o", "inner", "--", PROGS / "run_rows", 1000]
    done = subprocess.run([str(word) for word in command], env=kymo.env, cwd=kymo.home, capture_output=True, text=True, check=False,
                          timeout=60, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, "1000\n")
    counts = {name: kymo.rows(name, "SELECT count(*) AS n FROM trace.zones WHERE name = 'row'")[0]["n"]
              for name in ("outer", "inner") if (kymo.home / name).exists()}
    assert sum(counts.values()) == 1000, counts


# --- namespaces ---------------------------------------------------------------------------------------------------

def namespaces_refused():
    done = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


needs_namespaces = pytest.mark.skipif(bool(namespaces_refused()), reason=f"no namespaces here: {namespaces_refused()}")


@needs_namespaces
def test_a_run_inside_of_namespaces_is_whole_inside_and_outside(kymo):
    script = f"{KYMO} run -q -o there -- {PROGS}/run_rows 1000 && {KYMO} query -f csv there 'SELECT count(*) FROM trace.zones'"
    done = subprocess.run([*UNSHARE, "sh", "-c", script], env=kymo.env, cwd=kymo.home, capture_output=True, text=True, check=False,
                          timeout=60, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["1000", "count_star()", "1000"]), done.stderr
    assert kymo.rows("there", "SELECT count(*) AS n FROM trace.zones") == [{"n": 1000}]
    entry, = json.loads(kymo("ls", "-f", "json").stdout)
    assert entry["state"] == "ended", entry


def inside(outer):
    """The pid here of the program that was started in the namespaces."""
    return until(lambda: children(outer.pid))[0]


@needs_namespaces
def test_the_stack_of_a_program_in_namespaces_is_right_from_outside(kymo):
    code = "import sys\ndef waits_here():\n    print('begun', flush=True)\n    sys.stdin.read()\nwaits_here()\n"
    with kymo.running(*UNSHARE, sys.executable, "-c", code) as outer:
        done = kymo("backtrace", inside(outer))
        assert done.returncode == 0, done.stderr
        assert "waits_here" in done.stdout


@needs_namespaces
def test_from_inside_of_namespaces_programs_outside_are_one_sentence(kymo):
    """Their pids mean nothing there, or another process."""
    with kymo.running("sh", "-c", "echo begun; exec cat") as target:
        done = subprocess.run([*UNSHARE, str(KYMO), "backtrace", str(target.pid)], env=kymo.env, cwd=kymo.home, capture_output=True,
                              text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.startswith("kymo backtrace: ") and str(target.pid) in done.stderr
        assert state(target.pid) in "RSD"


@needs_namespaces
def test_a_live_recording_in_namespaces_is_live_from_outside(kymo):
    with kymo.running(*UNSHARE, PROGS / "probe_loop", KYMO="on") as outer:
        entry, = until(lambda: json.loads(kymo("ls", "-f", "json").stdout))
        assert entry["state"] == "live", entry
        recording = next(kymo.live.iterdir())
        until(lambda: kymo.rows(recording, "SELECT count(*) AS n FROM trace.zones")[0]["n"])
        assert kymo("rm", recording).returncode != 0, "what is written to is not removed"
        assert recording.exists() and outer.poll() is None
    until(lambda: json.loads(kymo("ls", "-f", "json").stdout)[0]["state"] != "live")
