"""A job of several hosts while it runs: each host is a PID, UTS and mount namespace with a memory of its own, and what they share
is the directory of the job."""
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import time

import pytest

from conftest import KYMO, NATIVE, PROGS, free_port

HAS_TORCH = importlib.util.find_spec("torch") is not None


def host(rank, *more):
    """A prefix that runs a command on a host of its own, with all its processes ending with it."""
    return ("unshare", "-Ur", "--uts", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", *more, "sh", "-c",
            f'mount -t tmpfs -o mode=700 none "$KYMO_DIR" && hostname host{rank} && exec "$@"', "sh")


@pytest.fixture(autouse=True)
def allowed(place):
    probe = subprocess.run([*host(0, "--net"), "true"], env=place.env, capture_output=True)
    if probe.returncode:
        pytest.skip(f"this machine does not allow namespaces: {probe.stderr.decode().strip()}")


def start(place, prefix, rank, *words, **more):
    env = {**place.env, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "KYMO_JOB": "job7", **more}
    words = [*prefix, KYMO, "run", "-q", "-o", "jobs/", "--", *words]
    return subprocess.Popen([str(word) for word in words], cwd=place.path, env=env, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True)


def elsewhere(place, *words):
    """kymo on a third host: it sees neither the processes nor the memory of the others."""
    done = subprocess.run([str(word) for word in [*host(9), KYMO, *words]], cwd=place.path, env=place.env, capture_output=True,
                          text=True, timeout=100, stdin=subprocess.DEVNULL)
    return done.stdout


def wait_for(what, begun):
    deadline = time.monotonic() + 60
    while True:
        answer = what()
        if answer:
            return answer
        assert time.monotonic() < deadline and all(one.poll() is None for one in begun), answer
        time.sleep(0.5)


def end(begun):
    """Kills them and waits until their children have gone, too: a process of many megabytes takes a moment to end."""
    for one in begun:
        subprocess.run(["kill", "-9", "--", f"-{one.pid}"], capture_output=True)
        one.wait()
        until = time.monotonic() + 30
        while subprocess.run(["kill", "-0", "--", f"-{one.pid}"], capture_output=True).returncode == 0 and time.monotonic() < until:
            time.sleep(0.05)


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed: make setup")
def test_a_hang_is_explained_on_its_host_on_another_one_and_after_a_kill(place):
    """Rank 0 is on host0, rank 1, which stops taking part, on this one."""
    more = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    words = (sys.executable, PROGS / "train.py", "absent")
    begun = [start(place, host(0), 0, *words, **more), start(place, (), 1, *words, **more)]

    def here():
        text = place.kymo("backtrace", "--why", "jobs/job7").stdout
        return "is not in all_reduce 16" in text and text

    def there():
        text = elsewhere(place, "backtrace", "--why", "jobs/job7")
        return "is not in all_reduce 16" in text and text

    try:
        text = wait_for(here, begun)
        assert re.match(r"Rank 1 on host .*, in which\s1\srank\swaits\sfor\s", text), text
        assert "running\n      wait_for_file  train.py:" in text and "sleeping (time.sleep)" in text, text
        assert "rank 0 on host host0  waits in all_reduce 16" in text, text
        assert len(text.splitlines()) <= 24 and max(map(len, text.splitlines())) <= 80
        # From the directory alone: some seconds behind, and it says so.
        text = wait_for(there, begun)
        assert "unknown\n      wait_for_file  train.py:" in text and "its last data is " in text, text
        assert "2 ranks of other hosts: known from the shared directory" in text, text
        rows = json.loads(elsewhere(place, "query", "-f", "json", "jobs/job7", "SELECT state, age_ns FROM kymo.runs"))
        assert [row["state"] for row in rows] == ["unknown"] * 2 and all(0 < row["age_ns"] < 60e9 for row in rows), rows
        report = elsewhere(place, "report", "jobs/job7")
        assert report.lstrip().startswith("Incomplete: 2 of 2 recordings are of other hosts"), report
        assert report.index("is absent: the other ranks wait for it in") < report.index("where     wait_for_file  train.py:")
    finally:
        end(begun)
    text = place.kymo("backtrace", "--why", "jobs/job7").stdout
    assert "was not in all_reduce 16" in text and "wait_for_file  train.py:" in text, text
    verdict = json.loads(place.kymo("report", "jobs/job7", "-f", "json").stdout)["verdicts"][0]
    assert verdict["name"] == "absent" and verdict["where"]["function"] == "wait_for_file", verdict


def test_rows_of_a_host_without_a_network_are_seconds_behind_and_no_port_is_open(place):
    begun = [start(place, host(rank, "--net"), rank, NATIVE / "run_rows", "100000000", "10") for rank in range(2)]

    def counted(wanted):
        rows = json.loads(elsewhere(place, "query", "-f", "json", "jobs/job7",
                                    "SELECT rank, count(*)::INT AS n FROM trace.zones GROUP BY 1 ORDER BY 1") or "[]")
        return len(rows) == 2 and all(row["n"] > wanted for row in rows) and rows

    try:
        first = wait_for(lambda: counted(0), begun)
        ranks = json.loads(elsewhere(place, "query", "-f", "json", "jobs/job7", "SELECT rank, host, state FROM dist.ranks"))
        assert ranks == [{"rank": rank, "host": f"host{rank}", "state": "unknown"} for rank in range(2)]
        wait_for(lambda: counted(max(row["n"] for row in first)), begun)
        for one in begun:
            inner = subprocess.run(["pgrep", "-P", str(one.pid)], capture_output=True, text=True).stdout.split()
            for table in ("tcp", "tcp6", "udp", "udp6"):
                assert len(pathlib.Path(f"/proc/{inner[0]}/net/{table}").read_text().splitlines()) == 1
    finally:
        end(begun)
