"""Each detector finds its problem in a real program that has it, and not in one that has not.

Programs sleep and compute in proportions that leave much room, and a claim is tried three times: what a busy machine does to
one run, it does not do to three.
"""
import importlib.util
import os
import pathlib
import re
import sys

import pytest

from conftest import NATIVE, PROGS

TIMES = 3
CORES = os.cpu_count() or 1


def python(file, *words):
    return (sys.executable, PROGS / file, *words)


# problem: the program that has it, the one that has not, what is said (all numbers are any).
CASES = {
    "spread": (python("steps.py", "spread"), python("steps.py", "even"),
               r"Some steps take much longer than others: .* of step time \(.*\), mostly in save_checkpoint\."),
    "warmup": (python("steps.py", "warmup"), python("steps.py", "even"),
               r"Warm-up is part of this measurement: the first steps take .* more than usual, .* of step time\."),
    "region": (python("region.py", "most"), python("region.py", "little"),
               r"The costliest region is simulate: .* of self time, .* of the run, in 10 calls\."),
    "function": (python("hot.py", "one"), python("hot.py", "shared"),
                 r"The costliest function is work \(hot\.py:\d+\): .* of the run\."),
    "tiny": ((NATIVE, "tiny"), (NATIVE, "large"),
             r"Many tiny operations take much of the time: 1,000,000 calls of .*s each take .* of the run\."),
    "lock": (python("locks.py", "one"), python("locks.py", "each"),
             r"Threads wait for locks: .* in total, .* of the run, mostly in cache\.lock\."),
    # Of the main thread, too: on a busy machine it waits for the lock all the while that it starts the others.
    "gil": (python("gil.py", "3"), python("gil.py", "1"),
            r"Python threads wait for each other: (worker \d|MainThread) waits for the GIL for .* of the run\."),
    # No disk can be made slow here: the parent of a vfork waits in the state in which one waits for a disk.
    "io": ((NATIVE, "blocked"), (NATIVE, "asleep"),
           r"The program waits for storage: a thread was blocked in I/O for .* of the run \(.*\)\."),
    "gc": (python("garbage.py", "many"), python("garbage.py", "few"), r"Garbage collection takes .* of the run \(.*\)\."),
    "import": (python("imports.py", "slow"), python("imports.py", "quick"),
               r"Importing modules takes .* of the run \(.*\); the costliest is [^ ]*/heavy\.py with .*s\."),
    "growth": (python("memory.py", "grows"), python("memory.py", "once"),
               r"Memory grows throughout the run: from .*B after start-up to .*B at the end\."),
    "crowded": ((NATIVE, "crowd", str(4 * CORES)), (NATIVE, "asleep"),
                r"Thread detect_native was ready to run but had no core for .* of the run: "
                r"(its own threads|other programs) use the cores.*\."),
    "swap": ((NATIVE, "faults", "FOLDER/file"), (NATIVE, "read", "FOLDER/file"),
             r"Memory is read back from storage: [\d,]+ major page faults, about .*s of waiting\."),
}
TORCH = {  # what one has is what the other has not
    "rank": (python("ddp.py", "late"), python("ddp.py", "even"),
             r"Rank 1 is late: the other ranks wait for it for .* of the time \(.*\)\."),
    "data": (python("torch_loop.py", "loader"), python("torch_loop.py", "module"),
             r"Data loading holds up training: it takes .* of step time \(.*\)\."),
    "module": (python("torch_loop.py", "module"), python("torch_loop.py", "loader"),
               r"The costliest module is 10\.[01]( \(Linear\))?: .* of the model's time \(.*\)\."),
}
if importlib.util.find_spec("torch") is not None:
    CASES |= TORCH
else:
    def test_torch():
        pytest.skip("torch is not installed: make setup")


def why_not(problem, run):
    """Why nothing can be found here, or None."""
    if problem == "crowded" and not os.access("/proc/self/schedstat", os.R_OK):
        return "this kernel does not measure how long threads wait for a core (/proc/PID/schedstat)"
    if problem == "swap" and int(run.out) < 1500:
        return f"{run.out.strip()} page faults needed I/O: this file system keeps what it is told to drop"
    if problem in ("gil", "function", "import") and run.query["SELECT count(*)::INT AS n FROM python.samples"][0]["n"] < 60:
        return "too few stacks were taken: the machine is too busy, or they cannot be read here"
    return None


def holds(runs, words, claim):
    """Whether it does in one of three runs; the last of them."""
    for left in range(TIMES - 1, -1, -1):
        run = runs.begin(words).result()
        if claim(run) or not left:
            return claim(run), run
        runs.again(words)
    return None


def chosen(session, parameter):
    """Its values in the tests that this session runs: with -k few programs are begun."""
    return {item.callspec.params[parameter] for item in session.items
            if hasattr(item, "callspec") and parameter in item.callspec.params}


@pytest.fixture(scope="session", autouse=True)
def begun(runs, request):
    problems = chosen(request.session, "problem")
    for problem, (has, has_not, _) in CASES.items():
        if problem in problems:
            runs.begin(has)
            runs.begin(has_not)


@pytest.mark.parametrize("problem", CASES)
def test_a_problem_is_found_in_a_program_that_has_it(runs, problem):
    words, _, said = CASES[problem]
    found, run = holds(runs, words, lambda run: problem in run.names())
    if not found and why_not(problem, run):
        pytest.skip(why_not(problem, run))
    assert found, run.verdicts
    assert re.fullmatch(said, run.sentence(problem)), run.sentence(problem)


@pytest.mark.parametrize("problem", CASES)
def test_a_problem_is_not_found_in_a_program_that_has_it_not(runs, problem):
    found, run = holds(runs, CASES[problem][1], lambda run: problem not in run.names())
    assert found, run.verdicts


# --- control groups: made where they can be ------------------------------------------------------------------------

def groups():
    """(folder, the file that takes a limit, a fifth of a core in its words) of every kind of control group."""
    yield pathlib.Path("/sys/fs/cgroup/kymo-detect"), "cpu.max", "20000 100000"
    yield pathlib.Path("/sys/fs/cgroup/cpu/kymo-detect"), "cpu.cfs_quota_us", "20000"


@pytest.fixture
def slow_group():
    """A group that gets a fifth of a core."""
    for folder, file, limit in groups():
        try:
            folder.mkdir(exist_ok=True)
            with open(folder / file, "r+", encoding="ascii") as limits:  # never makes one: the folder may be no group
                limits.write(limit)
        except OSError:
            if folder.exists():
                folder.rmdir()
            continue
        yield folder
        for _ in range(50):
            try:
                folder.rmdir()
                return
            except OSError:
                continue
        return
    pytest.skip("a control group with a limit of processor time cannot be made here (root, and /sys/fs/cgroup writable)")


def test_a_limit_of_processor_time_that_holds_a_program_back_is_found(runs, slow_group):
    found, run = holds(runs, python("throttled.py", slow_group / "cgroup.procs"), lambda run: "throttled" in run.names())
    assert found, run.verdicts
    assert re.fullmatch(r"The CPU limit slows the program: its cgroup was throttled for .* of the run \(.*\)\.",
                        run.sentence("throttled"))


def test_without_a_limit_there_is_none(runs):
    assert holds(runs, python("throttled.py"), lambda run: "throttled" not in run.names())[0]
