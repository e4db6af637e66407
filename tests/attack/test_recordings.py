"""Recordings that claim more than they hold, or numbers at the edge of their types: memory follows what is there, and what is
left out is said."""
import os
import pathlib
import socket
import subprocess
import sys
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
PROGS = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()
sys.path.append(str(ROOT / "tests"))
from running import until  # noqa: E402

MOST_MB = 400  # a query of an empty recording takes about 50
SECONDS = 60
SPARSE = ["sparse-ring", "sparse-rings", "sparse-segment", "sparse-tables", "sparse-totals", "shared-text"]


class Ended:
    def __init__(self, status, peak_mb, out, err):
        self.status, self.peak_mb, self.out, self.err = status, peak_mb, out, err


class Made:
    """Recordings of made_hostile, in the directory that `kymo ls` lists."""

    def __init__(self, home):
        self.home = home
        self.live = home / "live"
        self.live.mkdir(mode=0o700)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}
        self.env.update(KYMO_DIR=str(self.live), XDG_STATE_HOME=str(home / "state"), HOME=str(home), LC_ALL="C.UTF-8", TZ="UTC",
                        KYMO_QUIET="1")

    def make(self, word):
        path = self.live / word
        done = subprocess.run([PROGS / "made_hostile", path, word], capture_output=True, text=True, check=False)
        if done.returncode and "large" in done.stderr:
            pytest.skip(f"this file system has no such sparse files: {done.stderr}")
        assert done.returncode == 0, done.stderr
        return path

    def run(self, *words):
        """Runs kymo; the peak of its memory is that of the largest of it and its children."""
        with open(self.home / "out", "w+", encoding="utf-8") as out, open(self.home / "err", "w+", encoding="utf-8") as err:
            child = subprocess.Popen([KYMO, *map(str, words)], env=self.env, cwd=self.home, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=err)
            timer = threading.Timer(SECONDS, child.kill)
            timer.start()
            _, status, usage = os.wait4(child.pid, 0)
            timer.cancel()
            child.returncode = status
            out.seek(0)
            err.seek(0)
            return Ended(os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024, out.read(), err.read())

    def query(self, path, sql):
        done = self.run("query", "-f", "csv", path, sql)
        assert done.status == 0, done.err
        assert done.peak_mb < MOST_MB
        return done.out.split("\n", 1)[1].strip()

    def problems(self, path):
        return self.query(path, "SELECT text FROM kymo.problems")


@pytest.fixture
def made(tmp_path):
    return Made(tmp_path)


# ---- memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", SPARSE)
def test_listing_asking_and_reporting_a_sparse_recording_takes_the_memory_of_what_is_stored(made, word):
    path = made.make(word)
    for words in [("ls",), ("query", path, "SELECT count(*), max(step) FROM trace.zones"), ("report", path)]:
        done = made.run(*words)
        assert done.status == 0, (words, done.status, done.err)
        assert done.peak_mb < MOST_MB, (words, done.peak_mb)


def test_a_server_of_a_sparse_recording_takes_the_memory_of_what_is_stored(made):
    path = made.make("sparse-ring")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = made.home / "serve.log"
    with open(log, "wb") as out:
        server = subprocess.Popen([KYMO, "serve", "--port", str(port), path], env=made.env, cwd=made.home, stderr=out, stdout=out,
                                  stdin=subprocess.DEVNULL)
    try:
        until(lambda: server.poll() is not None or "http://" in log.read_text())
        assert server.poll() is None, log.read_text()
        done = made.run("query", f"127.0.0.1:{port}", "SELECT count(*) AS n FROM trace.zones")
        assert done.status == 0, done.err
        status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
        peak_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        assert peak_kb / 1024 < MOST_MB
    finally:
        server.terminate()
        server.wait(30)


def test_rows_that_are_stored_in_a_sparse_ring_are_read_and_the_others_are_said(made):
    path = made.make("sparse-ring")
    # The first 32,768 rows and the last one; a block that is stored in part has rows of zeros.
    assert made.query(path, "SELECT count(*) FROM trace.zones WHERE start_ns >= 0") == "32769"
    assert made.query(path, "SELECT max(step) FROM trace.zones") == "47999999"
    assert "rows cannot be read" in made.problems(path) and "has holes" in made.problems(path)


def test_rows_in_the_hole_of_a_segment_are_left_out_and_said(made):
    path = made.make("sparse-segment")
    assert made.query(path, "SELECT count(*) FROM trace.zones WHERE start_ns >= 0") == "1024"
    assert "rows are left out: they are holes of the file" in made.problems(path)


def test_totals_in_a_sparse_file_are_exact(made):
    path = made.make("sparse-totals")
    assert made.query(path, "SELECT sum(count) FROM trace.regions") == "6400"
    assert made.query(path, "SELECT count(*) FROM trace.zones") == "6400"


def test_names_that_share_one_text_cannot_multiply_it(made):
    assert "names point outside of p10-77/text, or share its bytes" in made.problems(made.make("shared-text"))


def test_a_snapshot_with_a_hole_for_a_table_of_contents_is_refused_at_once(made):
    path = made.make("sparse-snapshot") / "snapshot.kymo"
    for words in [("query", path, "SELECT 1"), ("report", path)]:
        done = made.run(*words)
        assert done.status == 1 and done.peak_mb < MOST_MB
        assert "cannot be read" in done.err


def test_a_recording_copied_with_holes_reads_as_before(made):
    """Tools that copy leave out blocks of zeros; nothing that was recorded is one."""
    run = subprocess.run([KYMO, "run", "-o", made.home / "whole", "--", PROGS / "cli_fixture", "plain"], env=made.env,
                         capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
    subprocess.run(["cp", "-r", "--sparse=always", made.home / "whole", made.home / "sparse"], check=True)
    for sql in ["SELECT count(*), sum(duration_ns) FROM trace.zones", "SELECT name, count, self_ns FROM trace.regions ORDER BY ALL",
                "SELECT text FROM kymo.problems"]:
        assert made.query(made.home / "sparse", sql) == made.query(made.home / "whole", sql)


# ---- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["rows-beyond-32", "rows-across-32", "rows-near-60"])
def test_row_numbers_beyond_32_bits_are_numbers(made, word):
    path = made.make(word)
    first = {"rows-beyond-32": 2**32, "rows-across-32": 2**32 - 512, "rows-near-60": 2**60 - 2048}[word]
    assert made.query(path, "SELECT count(*), min(step), max(step) FROM trace.zones") == "1024,7,1030"
    assert made.query(path, "SELECT kept, overwritten, emitted FROM kymo.streams") == f"1024,{first},{first + 1024}"
    assert made.problems(path) == ""
    assert made.run("report", path).status == 0


def test_more_rows_than_can_be_are_damage(made):
    path = made.make("rows-beyond-60")
    assert "an impossible number of rows" in made.problems(path)
    assert made.query(path, "SELECT count(*) FROM trace.zones") == "0"


def test_steps_up_to_the_last_of_32_bits_stay_apart_from_those_after_the_wrap(made):
    path = made.make("steps-near-32")
    assert made.query(path, "SELECT max(step) FROM trace.zones") == str(2**32 - 1)
    assert made.query(path, "SELECT count(*) FROM trace.zones WHERE step >= 4294966695") == "601"
    assert made.query(path, "SELECT count(*) FROM kymo_scan('trace.zones', step_from := 4294966695)") == "601"
    assert made.query(path, "SELECT count(*) FROM kymo_scan('trace.zones', step_to := 100)") == "100"
    assert made.run("report", path).status == 0


def test_clock_pairs_that_jump_back_and_forth_are_said_and_every_row_is_there(made):
    path = made.make("clock-jumps")
    assert "its clock pairs are invalid" in made.problems(path)
    assert made.query(path, "SELECT count(*) FROM trace.zones") == "1024"
    assert made.run("report", path).status == 0


def test_times_that_run_backwards_end_at_the_limits_of_their_type(made):
    path = made.make("clock-backwards")
    assert made.query(path, "SELECT count(*), min(start_ns) < 0, max(duration_ns) > 0 FROM trace.zones") == "1024,true,true"
    for words in [("report", path), ("export", "-f", "chrome", "-o", made.home / "out.json", path), ("ls",)]:
        done = made.run(*words)
        assert done.status == 0 and done.peak_mb < MOST_MB, (words, done.err)


# ---- arguments ---------------------------------------------------------------------------------

ARGUMENTS = ["NULL", "NULL::VARCHAR", "''", "repeat('x', 100000)", "repeat('é', 1000)", "5", "-1", "'trace.zones\\0'", "chr(0)",
             "[1]", "{'a': 1}", "'trace.zones', from_ns := NULL",
             "'trace.zones', from_ns := -9223372036854775808, to_ns := 9223372036854775807",
             "'trace.zones', step_from := 1e300", "'trace.zones', step_to := 'x'", "'trace.zones', no_such := 1", "", "1, 2, 3"]


@pytest.mark.parametrize("function", ["kymo_scan", "kymo_meta", "kymo_samples", "kymo_leaves", "kymo_sites", "kymo_rows"])
def test_no_argument_of_a_table_function_shows_the_inside_of_kymo(made, function):
    path = made.make("rows-beyond-32")
    for argument in ARGUMENTS:
        done = made.run("query", path, f"SELECT count(*) FROM {function}({argument})")
        assert done.status in (0, 1), (argument, done.status, done.err)
        text = done.out + done.err
        assert not any(word in text for word in ("INTERNAL", "Stack Trace", "0x", ".so(")), (argument, text[:1000])
        assert done.status == 0 or len(done.err) < 4000


# ---- time namespaces ---------------------------------------------------------------------------


@pytest.mark.parametrize("clock", ["", "monotonic"])
@pytest.mark.parametrize("offset", ["1000000", "-5000"])
def test_a_program_in_another_time_namespace_has_the_times_of_the_run(made, clock, offset):
    apart = ["unshare", "-T", "--monotonic", offset, "--boottime", offset if offset[0] != "-" else "0"]
    tried = subprocess.run([*apart, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no time namespace here: {tried.stderr.strip()}")
    env = {**made.env, **({"KYMO_CLOCK": clock} if clock else {})}
    run = subprocess.run([KYMO, "run", "-o", made.home / "run", "--", *apart, PROGS / "cli_fixture", "plain"], env=env,
                         capture_output=True, text=True, check=False, timeout=SECONDS)
    assert run.returncode == 0, run.stderr
    assert made.query(made.home / "run", "SELECT min(start_ns) > 0, max(start_ns) < 60e9 FROM trace.zones") == "true,true"
    ended = "SELECT exit_code, ended_ns > started_ns FROM kymo.processes WHERE role = 'target'"
    assert made.query(made.home / "run", ended) == "0,true"
    assert made.query(made.home / "run", "SELECT duration_ns < 60e9 FROM kymo.runs") == "true"
