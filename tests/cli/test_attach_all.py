"""kymo attach --all: every program of the user that appears, one recording for each."""
import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import uuid

import pytest

from conftest import KYMO
from probe_tools import rows, running, until


def named(tag, seconds=60):
    """A program whose command line begins with the tag."""
    return ["bash", "-c", f"echo begun; exec -a {tag} sleep {seconds}"]


@contextlib.contextmanager
def watching(kymo, *words, **options):
    """kymo attach --all; its stderr is complete when the block is left."""
    watcher = subprocess.Popen([KYMO, "attach", "--all", *map(str, words)], cwd=kymo.cwd, stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, env={**kymo.env, "KYMO_QUIET": "0", "KYMO_SYSTEM_RATE": "0.1"},
                               **options)
    try:
        yield watcher
    finally:
        if watcher.poll() is None:
            watcher.send_signal(signal.SIGTERM)
        watcher.err = watcher.communicate(timeout=60)[1]


def recordings(folder):
    return sorted(path for path in folder.iterdir() if (path / "run").exists()) if folder.exists() else []


def recorded_pids(folder):
    return {int(path.name.rsplit("-", 1)[1]) for path in recordings(folder)}


@pytest.fixture
def tag():
    return f"t{uuid.uuid4().hex}"


def test_programs_that_run_and_that_come_are_recorded_each_for_itself(kymo, tag):
    folder = kymo.cwd / "all"
    with running(kymo, command=named(tag)) as first, watching(kymo, "--match", f"^{tag} ", "-o", "all") as watcher:
        until(lambda: recorded_pids(folder) == {first.pid})
        with running(kymo, command=named(tag)) as second, running(kymo, command=named("other" + tag)) as other:
            until(lambda: recorded_pids(folder) == {first.pid, second.pid})
            ended = next(path for path in recordings(folder) if path.name.endswith(f"-{second.pid}"))
            until(lambda: rows(kymo, ended, "FROM host.process"))
            second.kill()
            second.wait()
            until(lambda: rows(kymo, ended, "SELECT state FROM kymo.runs") == [{"state": "ended"}])
            other.kill()
        watcher.send_signal(signal.SIGTERM)
        assert watcher.wait(60) == 0
        assert first.poll() is None, "the program goes on"
        first.kill()
    states = {path.name.rsplit("-", 1)[1]: rows(kymo, path, "SELECT state FROM kymo.runs")[0]["state"] for path in recordings(folder)}
    assert states == {str(first.pid): "detached", str(second.pid): "ended"}
    assert rows(kymo, ended, "FROM host.process")
    assert re.search(rf"^kymo: recorded \S+ \(pid {second.pid}\) for .*; the program has ended; recording all/", watcher.err, re.M)
    assert f"(pid {other.pid})" not in watcher.err


def test_children_are_part_of_the_program_that_started_them(kymo, tag):
    code = f"exec -a {tag} python3 -c \"import subprocess; print('begun', flush=True); subprocess.run(['sleep', '60', '{tag}'])\" {tag}"
    code = code.replace("'sleep', '60'", "'python3', '-c', 'import time; time.sleep(60)'")
    with running(kymo, command=["bash", "-c", code]) as program, watching(kymo, "--match", tag, "-o", "all"):
        children = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children")
        child = int(until(lambda: children.read_text().split())[0])
        path = until(lambda: recordings(kymo.cwd / "all"))[0]
        until(lambda: {row["pid"] for row in rows(kymo, path, "SELECT DISTINCT pid FROM host.process")} == {program.pid, child})
        assert recorded_pids(kymo.cwd / "all") == {program.pid}
        os.kill(child, signal.SIGKILL)


def test_programs_of_kymo_run_are_not_recorded_twice(kymo, tag):
    with running(kymo, command=[KYMO, "run", "-o", "own", "--", *named(tag)]), \
            running(kymo, command=named(tag)) as alone, watching(kymo, "--match", tag, "-o", "all"):
        until(lambda: recorded_pids(kymo.cwd / "all") == {alone.pid})
        alone.kill()
        path = recordings(kymo.cwd / "all")[0]
        until(lambda: rows(kymo, path, "SELECT state FROM kymo.runs") == [{"state": "ended"}])
        assert recorded_pids(kymo.cwd / "all") == {alone.pid}
        for stat in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if stat.read_text().startswith(tag):
                    os.kill(int(stat.parent.name), signal.SIGKILL)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program as somebody else")
def test_programs_of_other_users_are_never_recorded_even_by_root(kymo, tag):
    nobody = pwd.getpwnam("nobody")
    env = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    with running(kymo, command=["bash", "-c", f"cd /; echo begun; exec -a {tag} sleep 60"], **env) as foreign, \
            watching(kymo, "--match", f"^{tag} ", "-o", "all") as watcher:
        with running(kymo, command=named(tag)) as own:
            until(lambda: own.pid in recorded_pids(kymo.cwd / "all"))
            own.kill()
        foreign.kill()
    assert recorded_pids(kymo.cwd / "all") == {own.pid}
    assert f"(pid {foreign.pid})" not in watcher.err


def test_without_a_pattern_only_programs_that_start_later_are_recorded(kymo, tag):
    """In a pid namespace, so that no program of this machine is looked at."""
    words = ["unshare", "-rpf", "--mount-proc", "--kill-child"]
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("this user may not make namespaces")
    code = (f"(exec -a early{tag} sleep 60) & sleep 0.1; '{KYMO}' attach --all -o all & watcher=$!; sleep 1.5; "
            f"(exec -a late{tag} sleep 61) & echo begun; read; kill -TERM $watcher; wait $watcher")
    with running(kymo, command=[*words, "bash", "-c", code], env={"KYMO_SYSTEM_RATE": "0.1"}) as outer:
        def commands():
            return [(path / "run").read_bytes().decode(errors="replace") for path in recordings(kymo.cwd / "all")]
        until(lambda: any(f"late{tag}" in command for command in commands()))
        outer.stdin.write("\n")
        outer.stdin.flush()
    assert not any(f"early{tag}" in command for command in commands())


def test_recordings_of_ended_programs_together_stay_within_the_disk_budget(kymo, tag):
    kymo.env["KYMO_BUDGET"] = "disk=1M"
    folder, large = kymo.cwd / "all", None
    with watching(kymo, "--match", f"^{tag} ", "-o", "all"):
        for _ in range(2):
            with running(kymo, command=named(tag)) as program:
                path = until(lambda: [path for path in recordings(folder) if path.name.endswith(f"-{program.pid}")])[0]
                program.kill()
                program.wait()
            until(lambda: rows(kymo, path, "SELECT state FROM kymo.runs") == [{"state": "ended"}])
            if not large:  # a segment of 2 MB
                large = path
                next(large.glob("p*")).joinpath("s99.0").write_bytes(b"x" * (2 << 20))
        until(lambda: not large.exists())
    assert recordings(folder) == [path]


def test_the_collectors_end_with_a_killed_watcher(kymo, tag):
    with running(kymo, command=named(tag)) as program, watching(kymo, "--match", f"^{tag} ", "-o", "all") as watcher:
        path = until(lambda: recordings(kymo.cwd / "all"))[0]
        until(lambda: rows(kymo, path, "FROM host.process"))
        watcher.kill()
        until(lambda: rows(kymo, path, "SELECT state FROM kymo.runs") == [{"state": "detached"}])
        assert program.poll() is None
        program.kill()


def test_the_number_at_a_time_is_limited(kymo, tag):
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(running(kymo, command=["bash", "-c", f"echo begun; exec -a {tag} sleep 60"]))
                    for _ in range(34)]
        with watching(kymo, "--match", f"^{tag} ", "-o", "all", "--no-native") as watcher:
            until(lambda: len(recordings(kymo.cwd / "all")) == 32)
            for program in programs:
                program.kill()
        assert len(re.findall("the most at a time", watcher.err)) == 1


@pytest.mark.skipif(not shutil.which("systemd-run") or not pathlib.Path("/run/systemd/system").exists(), reason="no systemd runs here")
def test_a_user_unit_records_a_program(kymo, tag):
    unit = f"kymo-{tag}"
    scope = ["systemd-run", "--user", "--collect", f"--unit={unit}", f"--working-directory={kymo.cwd}", KYMO, "attach", "--all",
             "--match", tag, "-o", "all"]
    if subprocess.run(scope, capture_output=True).returncode:
        pytest.skip("no systemd of this user")
    try:
        with running(kymo, command=named(tag)) as program:
            until(lambda: recorded_pids(kymo.cwd / "all") == {program.pid})
            program.kill()
    finally:
        subprocess.run(["systemctl", "--user", "stop", unit], check=False)
