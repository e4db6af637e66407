"""A query takes no more memory and time than it may, and ends when it is told to, whatever DuckDB does."""
import contextlib
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import sys
import time

import pytest
from conftest import KYMO, PROGS, ROOT, Home

sys.path.insert(0, str(ROOT / "tests"))
from running import until

# DuckDB does not look at its interrupt inside of these.
LEVENSHTEIN = "SELECT levenshtein(repeat('x', 2000000), repeat('y', 2000000))"
SERIES = ("SELECT count(*) FROM (SELECT unnest(generate_series(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', "
          "INTERVAL 1 MICROSECOND)) AS t) WHERE t IS NULL")
CANCELLED = "kymo query: the query was cancelled\n"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("recorded"))
    home.recording = home.path / "small"
    subprocess.run([PROGS / "sql_fixture", home.recording], check=True)
    return home


def child_of(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return int(text.split()[0]) if text.split() else None


def cpu_seconds(pid):
    with contextlib.suppress(OSError):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0


def is_gone(pid):
    return not pathlib.Path(f"/proc/{pid}").exists()


@contextlib.contextmanager
def asking(home, *words, **more):
    """A command whose child computes. Both are gone afterwards."""
    with subprocess.Popen([KYMO, *map(os.fspath, words)], env=home.env, cwd=home.path, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **more) as process:
        try:
            process.child = until(lambda: child_of(process.pid))
            until(lambda: cpu_seconds(process.child) > 0.3)
            yield process
        finally:
            process.kill()


def test_a_long_string_does_not_exceed_the_memory_limit(recorded):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    for sql in ["SELECT length(repeat('x', 1500000000))", "SELECT length(repeat('x', 3000000000) || repeat('y', 1000000000))",
                "SELECT max(length(repeat('x', 200000000 + i::INT))) FROM range(40) t(i)"]:
        done = recorded("query", recorded.recording, sql)
        assert (done.returncode, done.stderr) == (
            1, "kymo query: the query exceeds its memory limit; reduce it (WHERE, LIMIT, fewer columns), or remove the limit "
               "(kymo query --unsafe)\n"), sql
    assert max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) < 1700 << 10  # KiB; the limit is 1 GiB


def test_a_string_within_the_limit_is_an_answer(recorded):
    done = recorded("query", recorded.recording, "SELECT length(repeat('x', 100000000)) AS n", "-f", "csv")
    assert done.stdout.split() == ["n", "100000000"]


@pytest.mark.parametrize("sql", [LEVENSHTEIN, SERIES], ids=["levenshtein", "generate_series"])
def test_the_time_limit_holds_for_what_ignores_the_interrupt(recorded, sql):
    began = time.monotonic()
    done = recorded("query", recorded.recording, "--timeout", "0.5", sql)
    assert done.returncode == 1
    assert done.stderr in ("kymo query: the query was stopped after 0.5 s, its time limit; reduce it (WHERE, LIMIT) or raise "
                           "the limit\n",
                           "kymo query: the query exceeds its memory limit; reduce it (WHERE, LIMIT, fewer columns), or "
                           "remove the limit (kymo query --unsafe)\n")
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("words,seconds", [([], 600), (["--timeout", "5"], 5), (["--timeout", "0"], None)],
                         ids=["default", "given", "removed"])
def test_every_query_has_a_limit_of_cpu_time_until_it_is_removed(recorded, words, seconds):
    with asking(recorded, "query", recorded.recording, *words, LEVENSHTEIN) as process:
        limits = pathlib.Path(f"/proc/{process.child}/limits").read_text()
        [(soft, hard)] = re.findall(r"^Max cpu time +(\S+) +(\S+)", limits, re.M)
        if seconds is None:
            assert [soft, hard] == list(re.findall(r"^Max cpu time +(\S+) +(\S+)", pathlib.Path("/proc/self/limits").read_text(),
                                                   re.M)[0])
        else:
            assert 0 <= int(soft) - (seconds + 1) * os.cpu_count() <= 10 and int(hard) - int(soft) == 2


def test_the_time_of_a_slow_reader_does_not_count(recorded):
    words = "query", recorded.recording, "--timeout", "2", "-f", "csv", "SELECT i, repeat('x', 100) AS x FROM range(300000) t(i)"
    with subprocess.Popen([KYMO, *map(os.fspath, words)], env=recorded.env, cwd=recorded.path, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        time.sleep(4)  # the pipe is full
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, b"") and out.count(b"\n") == 300001


def test_ctrl_c_ends_what_ignores_the_interrupt(recorded):
    with asking(recorded, "query", recorded.recording, LEVENSHTEIN) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (130, "", CANCELLED)
        assert is_gone(process.child)


def test_a_second_ctrl_c_ends_it_at_once(recorded):
    with asking(recorded, "query", recorded.recording, LEVENSHTEIN) as process:
        process.send_signal(signal.SIGINT)
        until(lambda: "0000000000000000" in [line.split()[1] for line in
              pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("ShdPnd")])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 130 and is_gone(process.child)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS], ids=["segv", "abort", "bus"])
def test_a_crash_of_duckdb_is_a_sentence(recorded, number):
    with asking(recorded, "query", recorded.recording, LEVENSHTEIN) as process:
        os.kill(process.child, number)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (1, "")
        assert err == (f"kymo query: DuckDB crashed ({signal.strsignal(number)}) while it read {recorded.recording}; the file "
                       "may be damaged or made to do this: get it again from its source, and do not trust it\n")


def test_a_kill_for_want_of_memory_is_a_sentence(recorded):
    with asking(recorded, "query", recorded.recording, LEVENSHTEIN) as process:
        os.kill(process.child, signal.SIGKILL)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (1, "")
        assert err == (f"kymo query: the process that read {recorded.recording} was killed, probably because the machine has "
                       "no memory left; reduce the query (WHERE, LIMIT) or free memory\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP], ids=["kill", "term", "hangup"])
def test_the_child_ends_with_the_command(recorded, number):
    with asking(recorded, "query", recorded.recording, LEVENSHTEIN) as process:
        process.send_signal(number)
        process.communicate(timeout=30)
        assert process.returncode == -number
        until(lambda: is_gone(process.child))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
def test_a_killed_command_leaves_no_temporary_file(recorded, tmp_path, number):
    for name in ["a.csv", "a.parquet"]:
        sql = f"SELECT 1 AS a UNION ALL ({LEVENSHTEIN})"
        with asking(recorded, "query", recorded.recording, "-f", name[2:], "-o", tmp_path / name, sql) as process:
            process.send_signal(number)
            process.communicate(timeout=30)
        assert list(tmp_path.iterdir()) == []


def test_a_crashed_child_leaves_no_temporary_file(recorded, tmp_path):
    with asking(recorded, "query", recorded.recording, "-f", "parquet", "-o", tmp_path / "a.parquet", LEVENSHTEIN) as process:
        os.kill(process.child, signal.SIGSEGV)
        process.communicate(timeout=30)
        assert process.returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_ctrl_z_stops_both_and_fg_continues_them(recorded):
    def state(pid):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]

    with asking(recorded, "query", recorded.recording, LEVENSHTEIN) as process:
        process.send_signal(signal.SIGTSTP)
        until(lambda: state(process.pid) == "T" and state(process.child) == "T")
        process.send_signal(signal.SIGCONT)
        until(lambda: state(process.pid) != "T" and state(process.child) != "T")


def test_ctrl_c_in_a_terminal_cancels_once(recorded):
    """The terminal sends it to the command and to its child."""
    pid, terminal = pty.fork()
    if not pid:
        os.execve(KYMO, ["kymo", "query", str(recorded.recording), "SELECT count(*) FROM range(1000000000000) a, range(1000) b"],
                  {**recorded.env, "PAGER": "cat"})  # one child
    child = until(lambda: child_of(pid))
    until(lambda: cpu_seconds(child) > 0.3)
    os.write(terminal, b"\x03")
    output = b""
    with contextlib.suppress(OSError):
        while more := os.read(terminal, 4096):
            output += more
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    assert output.count(b"the query was cancelled") == 1
    os.close(terminal)


def test_a_closed_pipe_ends_it_in_silence(recorded):
    with subprocess.Popen([KYMO, "query", recorded.recording, "FROM range(100000000)", "-f", "csv"], env=recorded.env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == -signal.SIGPIPE


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


ENDLESS_ROWS = "SELECT i, repeat('x', 100) AS x FROM range(1000000000) t(i)"


def killed_while_it_writes(recorded, folder, *words):
    """The command dies by SIGKILL, which nothing can catch; its child follows it."""
    with asking(recorded, *words) as process:
        until(lambda: any(pathlib.Path(f"/proc/{process.child}/fd").iterdir()))
        child = process.child
        process.kill()
        process.wait(30)
        until(lambda: is_gone(child))
    return entries(folder)


def test_a_kill_of_the_command_leaves_nothing_of_a_file(recorded, tmp_path):
    assert killed_while_it_writes(recorded, tmp_path, "query", recorded.recording, "-f", "csv", "-o", tmp_path / "rows.csv",
                                  ENDLESS_ROWS) == []


def test_what_a_kill_leaves_of_duckdbs_own_files_goes_with_the_next_command(recorded, tmp_path):
    [left] = killed_while_it_writes(recorded, tmp_path, "query", recorded.recording, "-f", "parquet", "-o", tmp_path / "rows.parquet",
                                    ENDLESS_ROWS)
    assert left.startswith("rows.parquet.kymo-tmp-")
    words = "query", recorded.recording, "-f", "parquet", "-o", tmp_path / "rows.parquet", "SELECT 1"
    assert recorded(*words).returncode == 0
    assert entries(tmp_path) == ["rows.parquet", left], "what is new may still be written to"
    os.utime(tmp_path / left, (1, 1))
    assert recorded(*words, "--force").returncode == 0
    assert entries(tmp_path) == ["rows.parquet"]
