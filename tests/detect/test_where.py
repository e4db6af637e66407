"""Each finding names the function of the program's own code, its file and its line, and what a thread waits for: in programs with
one planted cause each, and silence in their healthy twins. Some of them run beside busy loops too: the finding is the same.

What a busy machine does to one run, it does not do to three: a claim is tried three times (holds()).
"""
import importlib.util
import os
import re
import subprocess
import sys

import pytest

from conftest import NATIVE
from test_detectors import chosen, holds, python

WAITS = NATIVE.parent / "detect_waits"
HAS_TORCH = importlib.util.find_spec("torch") is not None

# cause: (verdict, program, healthy twin, function, file, sentence)
CAUSES = {
    "sleep": ("waiting", python("waits.py", "sleep"), python("waits.py", "sleep", "0.05"), "poll_status", "waits.py",
              r"The program sleeps for .* of the run\."),
    "backend": ("waiting", python("waits.py", "socket"), python("waits.py", "socket", "0.05"), "ask_backend", "waits.py",
                r"The program waits for a socket \({out}\) for .* of the run\."),
    "awaits": ("waiting", python("waits.py", "awaits"), python("waits.py", "awaits", "0.05"), "awaits", "waits.py",
               r"The program waits for a socket \({out}\) for .* of the run\."),
    "http": ("waiting", python("waits.py", "http"), python("waits.py", "http", "0.05"), "fetch_page", "waits.py",
             r"The program waits for a socket \({out}\) for .* of the run\."),
    "child": ("waiting", python("waits.py", "child"), python("waits.py", "child", "0.05"), "convert_file", "waits.py",
              r"The program waits for a child \(sleep\) for .* of the run\."),
    "pipe": ("waiting", python("waits.py", "pipe"), python("waits.py", "pipe", "0.05"), "read_results", "waits.py",
             r"The program waits for a pipe for .* of the run\."),
    "nested generators": ("function", python("hot.py", "nested"), python("hot.py", "shared"), "multiply", "hot.py",
                          r"The costliest function is multiply \(hot\.py:\d+\): .* of the run\."),
    "queue": ("waiting", python("waits.py", "queue"), python("waits.py", "queue", "0.05"), "produce_items", "waits.py",
              r"The program sleeps for .* of the run\."),
    "lock": ("lock", python("waits.py", "lock"), python("waits.py", "lock", "0.05"), "update_cache", "waits.py",
             r"Threads wait for locks: .* of the run, mostly in update_cache\."),
    "lock of a pool": ("lock", python("waits.py", "pool"), python("waits.py", "pool", "0.05"), "look_up_price", "waits.py",
                       r"Threads wait for locks: .* of the run, mostly in look_up_price\."),
    "GIL": ("gil", python("gil.py", "3"), python("gil.py", "1"), "work", "gil.py",
            r"Python threads wait for each other: .* waits for the GIL for .* of the run\."),
    "checkpoint": ("spread", python("loops.py", "checkpoint"), python("loops.py", "checkpoint", "few"), "write_checkpoint", "loops.py",
                   r"Some steps take much longer than others: .*, mostly in write_checkpoint\."),
    "function between zones": ("between", python("loops.py", "between"), python("loops.py", "between", "few"), "postprocess",
                               "loops.py", r"postprocess takes .* of step time \(.*\), outside of modules and data loading\."),
    "warm-up": ("warmup", python("loops.py", "warmup"), python("loops.py", "warmup", "few"), "compile_model", "loops.py",
                r"Warm-up is part of this measurement: .*"),
    "data phase": ("data", python("loops.py", "data"), python("loops.py", "data", "few"), "read_shard", "loops.py",
                   r"Data loading holds up training: .*"),
    "garbage": ("gc", python("loops.py", "gc"), python("loops.py", "gc", "few"), "build_records", "loops.py",
                r"Garbage collection takes .* of the run \(.*\)\."),
    "many files": ("files", python("loops.py", "files"), python("loops.py", "files", "few"), "load_labels", "loops.py",
                   r"Many small reads and writes: [\d,]+ system calls of .*B each, and the kernel takes .* of the run \(.*\)\."),
    "growth": ("growth", python("loops.py", "growth"), python("loops.py", "growth", "few"), "remember", "loops.py",
               r"Memory grows throughout the run: .*"),
    "import": ("import", python("imports.py", "slow"), python("imports.py", "quick"), "<module>", "imports.py",
               r"Importing modules takes .*heavy\.py with .*s\."),
    "region": ("region", python("region.py", "most"), python("region.py", "little"), "<module>", "region.py",
               r"The costliest region is simulate: .*"),
    "function": ("function", python("hot.py", "one"), python("hot.py", "shared"), "work", "hot.py",
                 r"The costliest function is work .*"),
    "C socket": ("waiting", (WAITS, "socket", "1.5"), (WAITS, "compute", "1.5"), "receive_answer", "detect_waits.c",
                 r"The program waits for a socket \({out}\) for .* of the run\."),
    "C pipe": ("waiting", (WAITS, "pipe", "1.5"), (WAITS, "compute", "1.5"), "read_result", "detect_waits.c",
               r"The program waits for a pipe for .* of the run\."),
    "C child": ("waiting", (WAITS, "child", "1.5"), (WAITS, "compute", "1.5"), "convert_file", "detect_waits.c",
                r"The program waits for a child \(sleep\) for .* of the run\."),
    "C sleep": ("waiting", (WAITS, "sleep", "1.5"), (WAITS, "compute", "1.5"), "pause_s", "detect_waits.c",
                r"The program sleeps for .* of the run\."),
    "C lock": ("lock", (WAITS, "lock", "1.5"), (WAITS, "compute", "1.5"), "look_up_index", "detect_waits.c",
               r"Threads wait for locks: .* of the run, mostly in look_up_index\."),
}
TORCH = {
    "data set": ("data", python("training.py", "dataset"), python("training.py", "dataset", "few"), "decode_image", "training.py",
                 r"Data loading holds up training: .*"),
    "workers": ("data", python("training.py", "workers"), python("training.py", "workers", "few"), "decode_image", "training.py",
                r"Data loading holds up training: .*"),
    "collate": ("data", python("training.py", "collate"), python("training.py", "collate", "few"), "tokenise_batch", "training.py",
                r"Data loading holds up training: .*"),
    "function between modules": ("between", python("training.py", "between"), python("training.py", "between", "few"),
                                 "filter_outliers", "training.py", r"filter_outliers takes .* of step time \(.*\), outside .*"),
    "kept graph": ("growth", python("training.py", "graph"), python("training.py", "graph", "few"), "train", "training.py",
                   r"Memory grows throughout the run: .*"),
    "small steps": ("small_steps", python("training.py", "small"), python("training.py", "small", "few"), "train", "training.py",
                    r"Steps are small: 3,000 steps of .*s each take .* of the run without imports; a torch module takes .*"),
    "late rank": ("rank", python("ddp.py", "late"), python("ddp.py", "even"), "augment_images", "ddp.py",
                  r"Rank 1 is late: the other ranks wait for it for .* of the time \(.*\)\."),
}
if HAS_TORCH:
    CAUSES |= TORCH

# Programs that are killed while they make no progress: what the first sentence tells, and the function.
HANGS = {
    "locks": (python("hangs.py", "locks", "4"), "transfer_money|write_journal",
              r"no progress for .*: deadlock: thread .* is in transfer_money \(hangs\.py:\d+\); .* is in write_journal \(.*\)\."),
    "socket": (python("hangs.py", "reply", "4"), "wait_for_reply",
               r"no progress for .*: MainThread waits to receive from a tcp socket, .* to {out}, .* in wait_for_reply \(.*\)\."),
    "pipes": (python("hangs.py", "pipes", "4"), "read_answer",
              r"no progress for .*: deadlock: process \d+ waits to read from process \d+ in read_answer .* in read_question .*"),
    "full pipe": (python("hangs.py", "full_pipe", "4"), "wait_for_converter",
                  r"no progress for .*: deadlock: process \d+ waits for the end of process \d+ in wait_for_converter .*; "
                  r"process \d+ waits to write to process \d+ .*"),
    "event loop": (python("hangs.py", "loop", "4"), "query_database",
                   r"no progress for .*: the event loop is blocked: MainThread sleeping \(time\.sleep\), in query_database .*"),
    "C mutex": ((WAITS, "mutex", "4"), "transfer_money|write_journal",
                r"no progress for .*: deadlock: thread .* waits for thread .* is in (transfer_money|write_journal) .*"),
}
if HAS_TORCH:
    HANGS["absent rank"] = (python("ddp.py", "absent", "4"), "wait_for_file",
                            r"no progress for .*: rank 1 is absent from all_reduce, in which rank 0 waits in average_gradients .*; "
                            r"rank 1: MainThread sleeping \(time\.sleep\), in wait_for_file .*")
BUSY = ["sleep", "backend", "lock", "C lock", "checkpoint", "function between zones", "data phase", "garbage"]


def found(run, name):
    return next((one for one in run.verdicts if one["name"] == name), None)


def is_named(run, verdict, function, file):
    """Whether the verdict holds, with the place."""
    one = found(run, verdict)
    if not one or not function:
        return bool(one)
    where = one["where"]
    return bool(where and re.fullmatch(function, where["function"]) and where["file"].endswith(file) and where["line"] > 0)


@pytest.fixture(scope="module", autouse=True)
def begun(runs, request):
    causes = chosen(request.session, "cause")
    for cause, (_, has, has_not, *_) in CAUSES.items():
        if cause in causes:
            runs.begin(has)
            runs.begin(has_not)
    for cause, (words, *_) in HANGS.items():
        if cause in causes:
            runs.begin(words)


def check(runs, cause, words):
    verdict, _, _, function, file, said = CAUSES[cause]
    good, run = holds(runs, words, lambda run: is_named(run, verdict, function, file))
    assert good, [(one["name"], one["sentence"], one["where"]) for one in run.verdicts]
    sentence = run.sentence(verdict)
    assert re.fullmatch(said.replace("{out}", re.escape(run.out.strip())), sentence), sentence
    return found(run, verdict)


@pytest.mark.parametrize("cause", CAUSES)
def test_the_function_is_named(runs, cause):
    one = check(runs, cause, CAUSES[cause][1])
    if cause == "lock":
        assert re.search(r"held in rebuild_index \(waits\.py:\d+\)", one["evidence"])
        assert re.search(r"held in rebuild_index \(waits\.py:\d+\)", one["try"])
    if cause == "lock of a pool":  # not the queue of the pool
        assert re.search(r"held in read_price \(waits\.py:\d+\)", one["try"])
    if cause == "C lock":
        assert re.search(r"held in (rebuild_index|compute_sums) \(detect_waits\.c:\d+\)", one["try"])
    if cause == "kept graph":
        assert "loss.item()" in one["try"] and "detach()" in one["try"]


@pytest.mark.parametrize("cause", CAUSES)
def test_a_healthy_twin_has_no_such_finding(runs, cause):
    good, run = holds(runs, CAUSES[cause][2], lambda run: CAUSES[cause][0] not in run.names())
    assert good, [(one["name"], one["sentence"]) for one in run.verdicts]


@pytest.mark.parametrize("cause", HANGS)
def test_a_program_that_was_killed_has_its_autopsy_first(runs, cause):
    words, function, said = HANGS[cause]
    good, run = holds(runs, words, lambda run: is_named(run, "ended", function, ""))
    first = run.verdicts[0]
    assert good and first["name"] == "ended", first
    assert re.search(said.replace("{out}", re.escape(run.out.strip() or "nothing")), first["sentence"]), first["sentence"]


def test_a_program_that_was_killed_while_it_worked_has_none(runs):
    good, run = holds(runs, python("hangs.py", "busy", "3"), lambda run: "no progress" not in run.verdicts[0]["sentence"])
    assert good, run.verdicts[0]
    assert run.verdicts[0]["where"]["function"] in ("poll_status", "busy")


def test_the_start_of_children_is_no_wait_for_storage(runs):
    """The parent of a vfork is in the state in which one waits for a disk. What it waits for differs: the kernel, or the child."""
    words = python("waits.py", "children")
    good, run = holds(runs, words, lambda run: "io" not in run.names() and
                      (run.verdicts[0]["where"] or {}).get("function") == "file_size")
    assert good, [(one["name"], one["sentence"], one["where"]) for one in run.verdicts]


@pytest.fixture
def busy_loops():
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    yield
    for one in loops:
        one.kill()
        one.wait()


@pytest.mark.parametrize("cause", BUSY)
def test_beside_four_busy_loops_the_finding_is_the_same(runs, busy_loops, cause):
    """The load itself is told as such, behind or beside it: crowded names other programs."""
    words = CAUSES[cause][1]
    if words[0] != WAITS:
        words = (*words, "busy" if words[1].name == "loops.py" else "1.0")
    check(runs, cause, words)
    crowded = found(runs.begin(words).result(), "crowded")
    assert not crowded or "other programs use the cores" in crowded["sentence"] or os.cpu_count() > 4
