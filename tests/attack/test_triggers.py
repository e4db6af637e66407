"""Triggers run commands: only those that the user has given, in runs of the user, and never by a recording or by other users."""
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

from conftest import KYMO, PROGS

NEVER = "never=SELECT 1 WHERE false"


def wait_for(claim, seconds=60):
    end = time.monotonic() + seconds
    while not (found := claim()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def let_pass(path):
    for one in (path, *path.parents):
        if one.stat().st_uid == 0:
            one.chmod(one.stat().st_mode | 0o011)


@pytest.fixture
def loop(kymo):
    """start(*options): a program that marks steps for a minute; returns its live directory."""
    children = []

    def start(*options, user=None, env=None):
        words = [KYMO, "run", "-q", *map(str, options), "--", PROGS / "trigger_loop", "3000", "20"]
        child = subprocess.Popen(user.command(*words) if user else words, env=env or kymo.env, cwd=kymo.path, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, start_new_session=True)
        children.append(child)
        live = pathlib.Path((env or kymo.env)["KYMO_DIR"])
        assert wait_for(lambda: list(live.glob("*/*/control")))
        time.sleep(0.5)  # the control has its content
        return next(live.glob("*/*/control")).parent.parent

    yield start
    for child in children:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def hostile_text(proof):
    return f"[evil]\nwhen = SELECT 1 AS x\naction = run touch {proof}\nevery = 0.1\ncooldown = 0\n"


def test_root_obeys_no_trigger_of_another_users_run(kymo, loop, other_user):
    his = other_user.directory(kymo.path / "his")
    os.mkdir(his / "live", 0o700)
    os.chown(his / "live", other_user.uid, other_user.uid)
    env = {**kymo.env, "KYMO_DIR": str(his / "live"), "XDG_STATE_HOME": str(his / "state"), "HOME": str(his)}
    live = loop("-o", his / "rec", user=other_user, env=env)
    proof = kymo.path / "proof"
    (live / "triggers").write_text(hostile_text(proof))
    os.chown(live / "triggers", other_user.uid, other_user.uid)
    done = kymo("trigger", "add", live, NEVER)
    assert done.returncode == 1 and "only those of your own runs are obeyed" in done.stderr, done.stderr
    done = kymo("watch-triggers", live, "-1", timeout=20)
    assert done.returncode != 0 and not proof.exists()


def test_a_user_obeys_no_trigger_of_a_directory_that_others_offer(kymo, loop, other_user):
    """Root offers a run that everyone may write to; the other user adds a trigger to it, and would run root's commands."""
    live = loop()
    let_pass(kymo.path)
    proof = kymo.path / "proof"
    live.parent.chmod(0o755)
    (live / "triggers").write_text(hostile_text(proof))
    for path in (live, *live.rglob("*")):
        path.chmod(0o777)
    hers = other_user.directory(kymo.path / "hers")
    os.mkdir(hers / "live", 0o700)
    os.chown(hers / "live", other_user.uid, other_user.uid)
    done = other_user(KYMO, "trigger", "add", live, NEVER,
                      env={**kymo.env, "KYMO_DIR": str(hers / "live"), "XDG_STATE_HOME": str(hers / "state"), "HOME": str(hers)})
    assert done.returncode == 1 and "only those of your own runs are obeyed" in done.stderr, done.stderr
    assert not proof.exists()


def test_definitions_that_others_could_write_are_not_obeyed(kymo, loop):
    live = loop("--trigger", NEVER)
    proof = kymo.path / "proof"
    aside = live / "aside"
    aside.write_text(hostile_text(proof))
    aside.chmod(0o666)
    aside.rename(live / "triggers")
    time.sleep(2)
    assert not proof.exists()
    (live / "triggers").chmod(0o600)  # the control: now they are
    os.utime(live / "triggers")
    assert wait_for(proof.exists)


def test_the_definitions_that_a_recording_holds_are_never_obeyed(kymo):
    """A recording of another one brings the folder `triggers`; no command that reads it runs what it says."""
    assert kymo("run", "-q", "-o", "rec", "--", PROGS / "cli_fixture", "plain").returncode == 0
    proof = kymo.path / "proof"
    (kymo.path / "rec/triggers").mkdir(exist_ok=True)
    for place in ("rec/triggers/triggers", "rec/triggers.txt"):
        (kymo.path / place).write_text(hostile_text(proof))
    for words in (["report", "rec"], ["query", "rec", "FROM kymo.triggers"], ["trigger", "ls", "rec"], ["pack", "rec", "x.kymo"],
                  ["lake", "add", "rec", "lake"], ["trigger", "add", "rec", NEVER]):
        kymo(*words)
    assert not proof.exists()


def test_requests_of_other_users_fire_nothing(kymo, loop, other_user):
    """Ranks of a job ask each other by files in the directory that they share."""
    job = kymo.path / "job"
    job.mkdir()
    let_pass(job)
    job.chmod(0o1777)
    proof = kymo.path / "proof"
    env = {**kymo.env, "SLURM_JOB_ID": "77", "SLURM_PROCID": "0", "SLURM_NTASKS": "2"}
    loop("-o", job / "rank0", "--trigger", NEVER, "--action", f"run touch {proof}", env=env)
    time.sleep(1)
    names = [f".kymo-fired,{job_name},never,{host}-1,1" for job_name in ("77", "slurm-77", "slurm.77")
             for host in ("elsewhere", socket.gethostname())]
    for name in names:
        assert other_user("touch", job / name).returncode == 0
    time.sleep(3)
    assert not proof.exists()
    for name in names:
        (job / name).unlink()
        (job / name.replace("-1,1", "-1,2")).touch()
    assert wait_for(proof.exists)  # the control: with the owner of the recording they count


def test_rows_with_escapes_are_printed_with_escapes(kymo):
    """The values of a row come from the recorded program."""
    words = ["--trigger", "odd=SELECT chr(27) || '[31m' || chr(155) AS x", "--action", "mark"]
    assert kymo("run", "-q", "-o", "rec", *words, "--", PROGS / "trigger_loop", "60", "20").returncode == 0
    for words in (["trigger", "ls", "rec"], ["query", "rec", "FROM kymo.triggers"], ["report", "rec"]):
        done = kymo(*words)
        assert not {"\x1b", "\x9b"} & set(done.stdout + done.stderr), words
