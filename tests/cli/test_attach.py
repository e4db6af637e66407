"""kymo attach: programs that were started without kymo, and those that record already."""
import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import KYMO, PROGS
from probe_tools import rows, running, until

LOOK = """
import os, signal, sys
def tell(number, frame): os.write(1, b"got %d\\n" % number)  # print may be at work
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD): signal.signal(number, tell)
print("begun", flush=True)
sys.stdin.read()
def look():
    status = open("/proc/self/status").read()
    tracer = [line for line in status.splitlines() if line.startswith(("TracerPid", "Threads"))]
    return tracer, sorted(os.listdir("/proc/self/fd")), [x for x in open("/proc/self/maps") if "kymo" in x]
print(look(), flush=True)
sys.exit(7)
"""


@contextlib.contextmanager
def cat(kymo):
    """A program that has nothing to do with kymo, once it is itself."""
    with running(kymo, command=["sh", "-c", "echo begun; exec cat"]) as program:
        until(lambda: pathlib.Path(f"/proc/{program.pid}/comm").read_text() == "cat\n")
        yield program


def attach(kymo, *words, env=None):
    return subprocess.Popen([KYMO, "attach", *map(str, words)], cwd=kymo.cwd, env={**kymo.env, **(env or {})},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def is_watched(kymo, pid):
    """Until its first row is there."""
    return kymo("query", "-f", "csv", pid, "FROM host.process LIMIT 1").out.count("\n") > 1


def end(process, number=signal.SIGINT):
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def test_metrics_of_a_program_that_never_heard_of_kymo(kymo):
    with cat(kymo) as program:
        done = kymo("attach", "--duration", "0.5", "-o", "seen", program.pid, env={"KYMO_SYSTEM_RATE": "0.05"})
        assert (done.status, done.out, done.err) == (0, "", "")
        assert program.poll() is None
    got = rows(kymo, "seen", "SELECT count(*) > 3 AS many, count(DISTINCT pid) AS pids, min(pid) AS pid FROM host.process")
    assert got == [{"many": True, "pids": 1, "pid": program.pid}]
    run = rows(kymo, "seen", "SELECT pid, program, command, state, exit_code, supervised FROM kymo.runs")
    assert run == [{"pid": program.pid, "program": "cat", "command": "cat", "state": "detached", "exit_code": None,
                    "supervised": True}]
    # Nobody knows how it will end: the recording has ended, not the program.
    assert kymo("report", "seen").out.startswith("cat  detached, program continued  ")
    assert " detached " in kymo("ls").out
    assert not list((kymo.home / "live").iterdir())


def test_a_recording_makes_way_when_that_is_asked(kymo):
    with cat(kymo) as program:
        def again(*words):
            return kymo("attach", "--duration", "0.1", "-o", "seen", *words, program.pid)
        assert again().status == 0
        assert again().err == "kymo attach: seen exists and is not empty; remove it, or use --force to replace a recording\n"
        assert again("--force").status == 0
        (kymo.cwd / "other").mkdir()
        (kymo.cwd / "other/file").write_text("kept")
        refused = kymo("attach", "--force", "-o", "other", program.pid)
        assert (refused.status, (kymo.cwd / "other/file").read_text()) == (1, "kept")
        assert program.poll() is None


def test_it_ends_with_the_program_and_says_so(kymo):
    with cat(kymo) as program:
        watcher = attach(kymo, program.pid, "-o", "seen", env={"KYMO_QUIET": "0", "KYMO_SYSTEM_RATE": "0.05"})
        until(lambda: is_watched(kymo, program.pid))
    out, err = watcher.communicate(timeout=30)
    assert (watcher.returncode, out) == (0, "")
    assert rows(kymo, "seen", "SELECT state FROM kymo.runs") == [{"state": "ended"}]
    assert kymo("report", "seen").out.startswith("cat  ended  ")
    first, *rest = err.splitlines()
    assert re.fullmatch(rf"kymo: recorded cat \(pid {program.pid}\) for [\d.]+ m?s; the program has ended; recording seen", first)
    assert any(line.startswith("  memory: peak ") for line in rest) and rest[-1].startswith("  next: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_a_summary_and_the_program_goes_on(kymo, number):
    with cat(kymo) as program:
        watcher = attach(kymo, program.pid, "-o", "seen", env={"KYMO_QUIET": "0"})
        until(lambda: is_watched(kymo, program.pid))
        status, _, err = end(watcher, number)
        assert status == 0 and "the program is still running; recording seen" in err
        assert program.poll() is None
    assert len(rows(kymo, "seen", "FROM host.process")) >= 2


def test_backtrace_of_a_recording_whose_program_runs_on_says_so(kymo):
    with running(kymo, command=["python3", "-c", LOOK]) as program:
        assert kymo("attach", "--duration", "1", "-o", "seen", program.pid).status == 0
        done = kymo("backtrace", "seen")
        assert "; the recording has ended, these are the last stacks taken\n" in done.out
        assert done.err == f"kymo backtrace: the program is still running; kymo backtrace {program.pid} shows its current stacks\n"
        why = kymo("backtrace", "--why", "seen")
        assert (why.status, why.out) == (1, "")
        assert why.err.endswith(f"its program is still running; use kymo backtrace --why {program.pid}\n")


def test_the_program_cannot_tell_that_it_was_watched(kymo):
    """Status, output, signals, descriptors, threads, mappings: the same with and without."""
    def run(watched):
        with running(kymo, command=["python3", "-c", LOOK]) as program:
            if watched:
                watcher = attach(kymo, program.pid, "-o", "seen", env={"KYMO_SYSTEM_RATE": "0.01"})
                until(lambda: is_watched(kymo, program.pid))
            program.send_signal(signal.SIGUSR1)
            assert program.stdout.readline() == "got 10\n"
            if watched:
                end(watcher)
            program.stdin.close()
            text = program.stdout.read()
            return program.wait(10), text
    assert run(True) == run(False)


def test_children_are_followed_those_that_are_there_and_those_that_come(kymo):
    code = ("import subprocess, sys; a = subprocess.Popen(['sleep', '60']); print(a.pid, flush=True); sys.stdin.readline(); "
            "b = subprocess.Popen(['sleep', '60']); print(b.pid, flush=True); sys.stdin.readline(); a.kill(); b.kill()")
    with running(kymo, command=["python3", "-c", code]) as program:
        first = int(program.first_line)
        watcher = attach(kymo, program.pid, "-o", "seen", env={"KYMO_SYSTEM_RATE": "0.05"})
        until(lambda: is_watched(kymo, program.pid))
        program.stdin.write("\n")
        program.stdin.flush()
        second = int(program.stdout.readline())
        want = {program.pid, first, second}
        until(lambda: {row["pid"] for row in rows(kymo, program.pid, "SELECT DISTINCT pid FROM host.process")} == want)
        assert end(watcher)[0] == 0
        program.stdin.write("\n")
        program.stdin.flush()


def test_a_program_that_records_is_joined_with_what_is_configured(kymo):
    with running(kymo, env={"KYMO": "on"}) as program:
        assert "kymo attach" in kymo("config", program.pid, "system_rate=0.05").err
        watcher = attach(kymo, program.pid)
        until(lambda: is_watched(kymo, program.pid))
        assert len(list((kymo.home / "live").iterdir())) == 1, "one recording"
        until(lambda: len(rows(kymo, program.pid, "FROM host.process")) > 4)
        done = kymo("config", program.pid, "system_rate=0.02")
        assert (done.out, done.err) == ("system_rate=0.02 (was 0.05)\n", "")
        again = kymo("attach", program.pid)
        assert again.status == 0
        assert again.err.startswith(f"kymo: process {program.pid} is already recorded by kymo (pid {watcher.pid}): stacks "
                                    "at an adaptive rate, metrics every 0.02 s, in ")
        assert end(watcher)[0] == 0
        zones = rows(kymo, program.pid, "SELECT count(*) > 0 AS some FROM trace.zones")
        assert zones == [{"some": True}]
        refused = kymo("attach", "-o", "elsewhere", program.pid)
        assert refused.status == 1 and "cannot use -o: process " in refused.err and "; omit -o, " in refused.err
    assert not (kymo.cwd / "elsewhere").exists()


def test_the_child_of_kymo_run_is_watched_already(kymo):
    with running(kymo, command=[KYMO, "run", "-q", "-o", "run", "--", PROGS / "probe_loop"]) as run:
        pid, = (int(x) for x in pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
                if "probe_loop" in os.readlink(f"/proc/{x}/exe"))
        watched = f"kymo: process {pid} is already recorded by kymo (pid {run.pid}): "
        done = kymo("attach", pid)
        assert done.status == 0 and done.err.startswith(watched)
        # As in the moment in which the program runs, and kymo run has measured nothing yet.
        for place in [*kymo.cwd.glob(f"run/p{run.pid}-*"), *kymo.home.glob(f"live/*/p{run.pid}-*")]:
            place.rename(kymo.home / place.name)  # at once: its collector goes on writing there
        done = kymo("attach", pid)
        assert done.status == 0 and done.err.startswith(watched + "in ")


def test_the_time_in_which_nobody_watched_is_a_gap(kymo):
    with running(kymo, env={"KYMO": "on", "KYMO_SYSTEM_RATE": "0.05"}) as program:
        assert kymo("attach", "--duration", "0.2", program.pid).status == 0
        assert rows(kymo, program.pid, "FROM kymo.gaps") == []
        time.sleep(0.3)
        assert kymo("attach", "--duration", "0.2", program.pid).status == 0
        gap, = rows(kymo, program.pid, "SELECT start_ns, duration_ns, cause FROM kymo.gaps")
        assert gap["cause"] == "no collector was running" and gap["duration_ns"] >= 0.3e9
        inside = rows(kymo, program.pid, "SELECT count(*) AS n FROM host.process h, kymo.gaps g "
                      "WHERE h.ts_ns > g.start_ns AND h.ts_ns < g.start_ns + g.duration_ns")
        assert inside == [{"n": 0}]


def test_a_collector_that_was_killed_is_replaced_no_row_is_lost_or_twice(kymo):
    """FAULTS 9. The program counts what it emits by itself: the number in its last zone's name would do, its stream does."""
    with running(kymo, command=[KYMO, "run", "-q", "-o", "run", "--", PROGS / "probe_loop"],
                 env={"KYMO_SYSTEM_RATE": "0.05"}) as run:
        until(lambda: rows(kymo, "run", "FROM trace.zones LIMIT 1"))
        pid = rows(kymo, "run", "SELECT pid FROM kymo.runs")[0]["pid"]
        run.kill()
        run.wait()
        assert rows(kymo, pid, "SELECT state FROM kymo.processes WHERE role = 'target'") == [{"state": "live"}]
        time.sleep(0.2)
        watcher = attach(kymo, pid)
        until(lambda: rows(kymo, pid, "FROM kymo.gaps"))
        assert len(json.loads(kymo("ls", "-f", "json").out)) == 1, "the run is still one"
        run.stdin.close()  # the program ends
        watcher.communicate(timeout=30)
        assert watcher.returncode == 0
    assert not list((kymo.home / "live").iterdir()), "all is on the disk"
    totals, = rows(kymo, "run", "SELECT count, (SELECT count(*) FROM trace.zones) AS n, (SELECT count(DISTINCT start_ns) FROM "
                   "trace.zones) AS different FROM trace.regions WHERE name = 'work'")
    assert totals["count"] == totals["n"] == totals["different"]
    streams, = rows(kymo, "run", "SELECT emitted, kept, overwritten, dropped FROM kymo.streams WHERE table_name = "
                    f"'trace.zones' AND pid = {pid}")
    assert streams["emitted"] == streams["kept"] == totals["n"] and streams["overwritten"] == streams["dropped"] == 0
    assert len(rows(kymo, "run", "FROM kymo.gaps")) == 1


def test_a_watcher_that_is_killed_leaves_the_program_alone(kymo):
    """FAULTS 25: at many moments; the program is never stopped, and the next one joins."""
    with running(kymo, env={"KYMO": "on"}) as program:
        for i in range(10):
            watcher = attach(kymo, program.pid, env={"KYMO_SYSTEM_RATE": "0.01"})
            time.sleep(0.02 * i)
            watcher.kill()
            watcher.communicate()
            state = pathlib.Path(f"/proc/{program.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            assert state in "RSD"
        assert kymo("attach", "--duration", "0.1", program.pid).status == 0


def test_stopped_programs_are_watched(kymo):
    with cat(kymo) as program:
        program.send_signal(signal.SIGSTOP)
        try:
            done = kymo("attach", "--duration", "0.2", "-o", "seen", program.pid, timeout=20)
            assert done.status == 0
            assert rows(kymo, "seen", "SELECT DISTINCT state FROM host.threads") == [{"state": "stopped"}]
        finally:
            program.send_signal(signal.SIGCONT)


def test_zombies_and_pids_that_are_not_there_are_refused_at_once(kymo):
    zombie = subprocess.Popen(["true"])
    until(lambda: pathlib.Path(f"/proc/{zombie.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z")
    done = kymo("attach", zombie.pid, timeout=20)
    assert (done.status, done.err) == (1, f"kymo attach: process {zombie.pid} has ended: it is a zombie of its parent "
                                       f"{os.getpid()}\n")
    zombie.wait()
    done = kymo("attach", zombie.pid)
    assert (done.status, done.err) == (1, f"kymo attach: process {zombie.pid} does not exist\n")
    assert not list(kymo.cwd.iterdir())


@pytest.mark.parametrize("words, sentence", [
    ([], "kymo attach: expected one PID; usage: kymo attach [OPTIONS] PID\n"),
    (["1", "2"], "kymo attach: expected one PID; usage: kymo attach [OPTIONS] PID\n"),
    (["train.py"], "kymo attach: train.py is not a pid; kymo ls and ps list processes\n"),
    (["0"], "kymo attach: 0 is not a pid; kymo ls and ps list processes\n"),
    (["--slow", "often", "1"], 'kymo attach: --slow="often" is not a number of seconds from 0 (off) to 86400\n'),
    (["--duration", "x", "1"], "kymo attach: --duration needs a number from 0 to 1000000000, not x\n"),
])
def test_wrong_use_is_one_sentence(kymo, words, sentence):
    done = kymo("attach", *words)
    assert (done.status, done.out, done.err) == (2, "", sentence)


@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")
def test_a_program_in_a_container_is_watched_and_configured_by_its_pid_here(kymo):
    """Other pid, user and mount namespaces: its number there is another one."""
    words = ["unshare", "-rpf", "--mount-proc", "--kill-child"]
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("this user may not make namespaces")
    with running(kymo, command=[*words, PROGS / "probe_loop"], env={"KYMO": "on"}) as outer:
        # `unshare` itself does not record; what it started does.
        pid = int(until(lambda: pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split())[0])
        until(lambda: kymo("config", pid).status == 0)
        done = kymo("config", pid, "torch=on")
        assert (done.status, done.out) == (0, "torch=on (was off)\n")
        watcher = attach(kymo, pid, env={"KYMO_SYSTEM_RATE": "0.05"})
        until(lambda: rows(kymo, next((kymo.home / "live").iterdir()), f"FROM host.process WHERE pid = {pid}"))
        assert end(watcher)[0] == 0
        assert len(list((kymo.home / "live").iterdir())) == 1, "joined"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program as somebody else")
def test_a_program_of_another_user_is_watched_as_far_as_the_kernel_lets_us(kymo):
    """FAULTS 23: by one who is not root, so that memory, I/O and namespaces are denied."""
    nobody = pwd.getpwnam("nobody")
    place = kymo.home / "of-nobody"
    place.mkdir()
    os.chown(place, nobody.pw_uid, nobody.pw_gid)
    for path in [kymo.home, *kymo.home.parents]:
        if path.stat().st_mode & 0o001 == 0:
            if path.owner() != "root" or path.parent == path:
                pytest.skip(f"{path} is closed for others")
            path.chmod(path.stat().st_mode | 0o011)
    with cat(kymo) as program:
        (place / "live").mkdir(mode=0o700)
        os.chown(place / "live", nobody.pw_uid, nobody.pw_gid)
        env = {**kymo.env, "KYMO_DIR": str(place / "live"), "XDG_STATE_HOME": str(place / "state"), "HOME": str(place)}
        done = subprocess.run([KYMO, "attach", "--duration", "0.3", "-o", place / "seen", str(program.pid)], cwd=place,
                              env={**env, "KYMO_SYSTEM_RATE": "0.05", "KYMO_QUIET": "0"}, user=nobody.pw_uid, group=nobody.pw_gid,
                              extra_groups=[], capture_output=True, timeout=30)
        if done.returncode and b"Permission denied" in done.stderr:
            pytest.skip("nobody cannot reach the build directory")
        assert done.returncode == 0, done.stderr
        assert done.stderr.decode().splitlines()[0] == (
            f"kymo: recording metrics only, no Python stacks: process {program.pid} belongs to another user; "
            f"use sudo kymo attach {program.pid}")
    assert len(rows(kymo, place / "seen", "FROM host.process")) > 2


SPIN = """
import sys, threading
def inner():
    for _ in range(1000): pass
def outer():
    while True: inner()
threading.Thread(target=outer, daemon=True, name="spinner").start()
print("begun", flush=True)
sys.stdin.read()
"""


def test_python_stacks_of_a_program_that_never_heard_of_kymo(kymo):
    with running(kymo, command=[sys.executable, "-c", SPIN]) as program:
        watcher = attach(kymo, program.pid, "-o", "seen", env={"KYMO_SAMPLE_RATE": "0.02"})
        until(lambda: is_watched(kymo, program.pid))
        until(lambda: len(rows(kymo, program.pid, "FROM python.samples")) > 10)
        assert end(watcher)[0] == 0
    stacks = rows(kymo, "seen", "SELECT DISTINCT list_transform(stack, f -> split_part(f, ' ', 1)) AS s FROM python.samples "
                  "WHERE thread = 'spinner'")
    assert any(row["s"][:2] == ["inner", "outer"] for row in stacks), stacks
    sources = {row["source"]: row for row in rows(kymo, "seen", "FROM kymo.overhead")}
    assert set(sources) - {"native"} == {"collector", "sampler"}
    sampler = sources["sampler"]
    assert sampler["events"] >= 5 and sampler["total_ns"] > 0
    assert sampler["cost_ns_per_event"] == pytest.approx(sampler["total_ns"] / sampler["events"], abs=0.06)


FETCH = """
import sys, threading, time
def fetch():
    time.sleep(0.2)
def serve():
    while True: fetch()
threading.Thread(target=sys.stdin.read, daemon=True).start()
print("begun", flush=True)
serve()
"""


def test_the_function_that_waits_is_named(kymo):
    (kymo.cwd / "server.py").write_text(FETCH)
    with running(kymo, command=[sys.executable, "server.py"]) as program:
        watcher = attach(kymo, program.pid, "-o", "seen", env={"KYMO_SAMPLE_RATE": "0.02"})
        until(lambda: is_watched(kymo, program.pid))
        until(lambda: len(rows(kymo, program.pid, "FROM python.samples")) > 40)
        assert end(watcher)[0] == 0
    verdicts = json.loads(kymo("report", "seen", "-f", "json").out)["verdicts"]
    found, = [one for one in verdicts if one["name"] == "waiting"]
    assert found["sentence"].startswith("The program sleeps for ") and found["where"]["function"] == "fetch", verdicts


def test_the_sample_rate_holds_while_it_watches(kymo):
    with running(kymo, command=[sys.executable, "-c", SPIN]) as program:
        watcher = attach(kymo, program.pid, "-o", "seen", env={"KYMO_SAMPLE_RATE": "0"})
        until(lambda: is_watched(kymo, program.pid))
        assert rows(kymo, program.pid, "FROM python.samples") == []
        assert kymo("config", program.pid, "sample_rate=0.01").out == "sample_rate=0.01 (was 0)\n"
        until(lambda: len(rows(kymo, program.pid, "FROM python.samples")) > 10)
        assert kymo("config", program.pid, "sample_rate=0").out == "sample_rate=0 (was 0.01)\n"
        count = "SELECT count(*) AS n FROM python.samples"
        until(lambda: rows(kymo, program.pid, count) == rows(kymo, program.pid, count))
        assert end(watcher)[0] == 0
    changes = rows(kymo, "seen", "SELECT ts_ns, new FROM kymo.config WHERE key = 'sample_rate' ORDER BY ts_ns")
    assert [change["new"] for change in changes] == ["0.01", "0"]
    # None before it was asked for is shown above: the row of the change is written once it holds, and a sample may be quicker.


def test_a_slow_zone_of_a_program_that_records_is_a_cause(kymo):
    code = ("import kymo, sys\nprint('begun', flush=True)\ndef stuck():\n    with kymo.region('stuck'): sys.stdin.readline()\n"
            "stuck()\nkymo.mark('checkpoint')\nsys.stdin.read()\n")
    with running(kymo, command=[sys.executable, "-c", code], env={"KYMO": "on"}) as program:
        watcher = attach(kymo, program.pid, "--slow", "0.1", env={"KYMO_SAMPLE_RATE": "0"})
        until(lambda: is_watched(kymo, program.pid))
        causes = "SELECT DISTINCT cause FROM python.samples"
        until(lambda: {"cause": "slow zone: stuck"} in rows(kymo, program.pid, causes))
        program.stdin.write("\n")
        program.stdin.flush()
        until(lambda: {"cause": "mark: checkpoint"} in rows(kymo, program.pid, causes))
        assert end(watcher)[0] == 0


def test_the_ancestor_of_all_is_not_followed(kymo):
    done = kymo("attach", "1")
    assert done.status == 1 and "every process is its child and would be recorded" in done.err
