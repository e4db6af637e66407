"""Clocks of hosts on one axis: made jobs with known clocks, ranks of one machine that are treated as strangers, imported traces."""
import importlib.util
import json
import pathlib
import random

import pytest

from conftest import make_job
from made_jobs import CLOCK_ERRORS, CLOCKS

HAS_TORCH = importlib.util.find_spec("torch") is not None


def test_offsets_and_drifts_come_back_within_the_stated_error(place):
    """Offsets of up to 5 s, drifts of up to 200 ppm. Few collectives, many (a clock drifts by 2 ms meanwhile), several ranks a host,
    a rank that is always late."""
    rows, usual = [], []
    for seed, more in enumerate(CLOCKS):
        job = make_job(place, f"made{seed}", f"clocks=1 seed={seed} {more}")
        rows += place.ask(job, CLOCK_ERRORS)
        usual = usual if "steps=40" in more or "latency" in more else list(rows)
        assert place.ask(job, "FROM kymo.problems") == []
    outside = [row for row in rows if row["worst"] > row["stated"]]
    assert len(outside) <= len(rows) // 100, outside
    stated = sorted(row["stated"] for row in rows)
    print(f"{len(rows)} ranks: stated error {stated[len(rows) // 2]} ns at the median, {stated[-1]} ns at most; "
          f"largest error {max(row['worst'] for row in rows)} ns; {len(outside)} outside")
    # Few or slow collectives give a larger error, which is stated.
    assert max(row["worst"] for row in usual) <= 50_000 and stated[len(rows) // 2] <= 50_000
    assert len(rows) > 350


def test_a_step_makes_a_second_piece(place):
    job = make_job(place, "made", "ranks=4 clocks=1 pause=2")
    rows = place.ask(job, CLOCK_ERRORS)
    assert all(row["worst"] <= row["stated"] <= 50_000 for row in rows), rows
    assert [row["pieces"] for row in rows] == [1, 1, 2, 1]
    steps = place.ask(job, "SELECT offset_ns FROM dist.clocks WHERE rank = 2")
    assert abs(steps[1]["offset_ns"] - steps[0]["offset_ns"] + 2_000_000_000) < 2_000_000  # and the drift in between


def test_a_pairing_against_causality_is_refused_with_the_reason(place):
    job = make_job(place, "made", "ranks=4 swap=2")
    rows = {row["rank"]: row for row in place.ask(job, "FROM dist.clocks")}
    assert [rows[rank]["method"] for rank in range(4)] == ["same clock", "collectives", "refused", "collectives"]
    assert "contradict causality" in rows[2]["reason"] and rows[2]["error_ns"] is None and not rows[2]["applied"]
    (problem,) = place.ask(job, "FROM kymo.problems")
    assert problem["text"].startswith("the clock of rank 2 on host host2 is not aligned: "), problem


def test_without_collectives_wall_clocks_count_with_an_unknown_error(place):
    job = make_job(place, "made", "ranks=2 steps=0")
    assert [(row["method"], row["error_ns"]) for row in place.ask(job, "FROM dist.clocks")] == [("wall clock", None)] * 2


def test_aligned_clocks_name_the_late_rank(place):
    """By wall clocks another one would come last."""
    job = make_job(place, "made", "ranks=4 clocks=1 late=2:20000 samples=1")
    assert place.verdicts(job)["rank"]["sentence"].startswith("Rank 2 on host host2 is late: ")


def strangers(job):
    """Each recording of the job says that it is of another boot."""
    for number, run in enumerate(sorted(job.glob("*/run"))):
        page = bytearray(run.read_bytes())
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
        at = page.index(boot)
        page[at:at + 8] = b"%08d" % number
        run.write_bytes(page)


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed: make setup")
def test_ranks_of_one_machine_have_one_clock_and_as_strangers_nearly_so(place):
    said = place.ranks(4, "even", more=("200", "2"))
    assert [status for _, status in said] == [0] * 4, said
    rows = place.ask("jobs/job7", "FROM dist.clocks")
    assert [(row["method"], row["offset_ns"], row["error_ns"]) for row in rows] == [("same clock", 0, 0)] * 4
    strangers(place.path / "jobs/job7")
    rows = place.ask("jobs/job7", "FROM dist.clocks WHERE offset_ns <> 0")
    print([(row["offset_ns"], row["error_ns"]) for row in rows])
    assert len(rows) == 3 and all(row["method"] == "collectives" for row in rows)
    # The truth is 0, but for what reading two wall clocks at the start may differ.
    assert all(abs(row["offset_ns"]) <= row["error_ns"] + 20_000 for row in rows), rows


def kineto(path, rank, times, shift_ns):
    """A trace with an all_reduce kernel for each (start, end)."""
    events = []
    for number, (start, end) in enumerate(times):
        events.append({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "pid": 0, "tid": 7,
                       "ts": (start + shift_ns) / 1000, "dur": (end - start) / 1000,
                       "args": {"device": 0, "stream": 7, "correlation": number + 1, "Collective name": "allreduce",
                                "Process Group Name": "0", "Group size": 2, "In msg nelems": 1024, "dtype": "Float"}})
    path.write_text(json.dumps({"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "traceEvents": events}))


@pytest.mark.parametrize("shift, shuffle, method, applied", [
    (0, False, "collectives", False), (5_000_000, False, "collectives", True), (0, True, "refused", False)])
def test_ranks_of_imported_traces_are_aligned_only_if_they_differ(place, shift, shuffle, method, applied):
    chance = random.Random(7)
    starts = [1_000_000_000 + step * 2_000_000 for step in range(64)]
    arrivals = [[start + chance.randrange(400_000) // 1000 * 1000 for start in starts] for _ in range(2)]
    ends = [max(pair) + 20_000 for pair in zip(*arrivals)]
    for rank in range(2):
        times = [(arrival, end + 1000 * chance.randrange(8)) for arrival, end in zip(arrivals[rank], ends)]
        if shuffle and rank:
            times = [(a + 3_000_000 * (i * 7 % 5), b + 3_000_000 * (i * 7 % 5)) for i, (a, b) in enumerate(times)]
        kineto(place.path / f"rank{rank}.json", rank, times, rank * shift)
    done = place.kymo("import", "rank0.json", "rank1.json", "-o", "run")
    assert done.returncode == 0, done.stderr
    row = place.ask("run", "FROM dist.clocks")[1]
    assert (row["method"], row["applied"]) == (method, applied), row
    if method == "collectives":
        assert abs(row["offset_ns"] - shift) <= row["error_ns"] <= 50_000, row
        wait = place.ask("run", "SELECT max(wait_ns) AS wait FROM dist.collectives")[0]["wait"]
        assert wait <= 400_000 + row["error_ns"]
