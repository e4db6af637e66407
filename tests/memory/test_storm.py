"""On and off, over and over, under threads, forks, libraries that come and go, and signals: not one crash."""
import os
import pathlib
import subprocess

import pytest
from conftest import KYMO, PROGS

JEMALLOC = next(iter(sorted(pathlib.Path("/usr/lib").glob("*/libjemalloc.so.2"))), None)
SWITCHES = "1000" if float(os.environ.get("KYMO_TEST_SECONDS", "0")) > 60 else "40"


@pytest.mark.parametrize("allocator", ["malloc", "jemalloc"])
def test_switching_under_a_storm_never_crashes(lab, allocator):
    if allocator == "jemalloc" and not JEMALLOC:
        pytest.skip("libjemalloc2 is not installed")
    env = {**lab.env, "KYMO": "off"}
    if allocator == "jemalloc":
        env["LD_PRELOAD"] = str(JEMALLOC)
    command = [PROGS / "memory_storm", KYMO.parent / "libkymo_memory.so.0", SWITCHES, PROGS / "memory_plugin.so"]
    done = subprocess.run(command, env=env, cwd=lab.home, capture_output=True, text=True, check=False, timeout=400)
    assert (done.returncode, done.stdout) == (0, "1 1 1 1\n"), done.stderr


def test_a_program_with_jemalloc_preloaded_is_recorded_exactly(lab):
    if not JEMALLOC:
        pytest.skip("libjemalloc2 is not installed")
    done, path = lab.run(PROGS / "memory_load", "threads", "4", options=("--memory=exact",), LD_PRELOAD=str(JEMALLOC))
    row, = lab.ask(path, "SELECT count(*) AS n, sum(size) AS bytes FROM alloc.allocations WHERE site = 'site_a' AND kind = 'alloc'")
    assert [int(row["n"]), int(row["bytes"])] == [int(word) for word in done.stderr.split("\n")[-2].split()][:2]


def test_callers_that_are_known_already_are_those_that_a_whole_walk_finds(lab):
    """Alloca, aligned stacks, tail calls, longjmp, exceptions, handlers, contexts, threads: 200 random stacks of each, four times."""
    command = [PROGS / "memory_walks", KYMO.parent / "libkymo_memory.so.0", "200"]
    done = subprocess.run(command, env={**lab.env, "KYMO": "off"}, cwd=lab.home, capture_output=True, text=True, check=False,
                          timeout=400)
    assert done.returncode == 0, done.stderr
    same, different = map(int, done.stdout.split())
    assert same > 50_000
    assert different == 0
