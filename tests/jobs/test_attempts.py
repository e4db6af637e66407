"""A job that torchrun restarts, and comparisons by rank and by attempt."""
import importlib.util
import json
import sys

import pytest

from conftest import PROGS, ROOT, free_port, make_job


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed: make setup")
def test_attempts_of_an_elastic_job_are_separate(place):
    recording = "rec"
    done = place.kymo("run", "-q", "-o", recording, "--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", 2,
                      "--max-restarts", 1, "--monitor-interval", 0.1, "--master-port", free_port(), PROGS / "elastic.py")
    assert done.returncode == 0, done.stderr
    ranks = place.ask(recording, "SELECT rank, attempt, collectives::INT AS n FROM dist.ranks")
    assert [(row["rank"], row["attempt"]) for row in ranks] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [row["n"] for row in ranks] == [13, 30, 12, 30]
    # Both attempts number their collectives from 1: they are not mixed.
    rows = place.ask(recording, "SELECT group_name, count(DISTINCT seq)::INT AS n, max(wait_ns) < 30e9 AS sane FROM dist.collectives "
                                "GROUP BY 1 ORDER BY 1")
    assert rows == [{"group_name": "0", "n": 13, "sane": True}, {"group_name": "0 (restart 1)", "n": 30, "sane": True}]
    verdicts = place.verdicts(recording)
    assert verdicts["restarted"]["sentence"].startswith(
        "The job was restarted 1 time: rank 1 failed with RuntimeError: bad sample (elastic.py:"), verdicts["restarted"]
    assert "absent" not in verdicts  # the others waited for it in an attempt that is over
    compared = json.loads(place.kymo("compare", "--by", "attempt", recording, "-f", "json").stdout)
    (row,) = compared["rows"]
    assert (row["kind"], row["name"]) == ("attempt", "attempt 1") and row["b"] > 2 * row["a"], compared
    assert place.kymo("backtrace", "--why", recording).stdout.startswith("No rank waited in a collective at the end.\n")


SLURM = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
TORCH = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "TORCHELASTIC_RESTART_COUNT": "0"}


@pytest.mark.parametrize("launcher", [{}, TORCH, {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}])
def test_a_job_that_a_scheduler_starts_again_continues_its_series(place, launcher):
    """Slurm keeps the id of a job that is requeued, and sets SLURM_RESTART_COUNT from the second time on."""
    steps = "import time, kymo\nfor i in range(20):\n    kymo.step()\n    time.sleep(0.002 * {slow})\nkymo.step_end()"
    for count, slow in (("", 1), ("1", 10)):
        again = {"SLURM_RESTART_COUNT": count} if count else {}
        done = place.kymo("run", "-q", "-o", "rec/", "--", sys.executable, "-c", steps.format(slow=slow),
                          env={**SLURM, **launcher, **again, "PYTHONPATH": str(ROOT / "build/python")})
        assert done.returncode == 0, done.stderr
    (job,) = [path for path in (place.path / "rec").iterdir() if "4711" in path.name]
    rows = place.ask(job, "SELECT coalesce(attempt, 0)::INT AS attempt, rank FROM dist.ranks ORDER BY 1")
    assert rows == [{"attempt": 0, "rank": 0}, {"attempt": 1, "rank": 0}]
    compared = json.loads(place.kymo("compare", "--by", "attempt", job, "-f", "json").stdout)
    (row,) = compared["rows"]
    assert row["name"] == "attempt 1" and row["b"] > 2 * row["a"], compared


def test_ranks_of_one_job_are_compared_with_the_median_rank(place):
    job = make_job(place, "made", "ranks=4 late=2:20000")
    text = place.kymo("compare", "--by", "rank", job).stdout
    flat = " ".join(text.split())
    assert "1 of 4 ranks differs in its own time from rank " in flat and ": rank 2 2.9" in flat, text
    assert text.count("slower") == 1 and max(map(len, text.splitlines())) <= 82, text
    rows = json.loads(place.kymo("compare", "--by", "rank", job, "-f", "json").stdout)["rows"]
    assert [row["significant"] for row in rows] == [True, False, False] and rows[0]["name"] == "rank 2  host2"


def test_jobs_of_different_sizes_state_what_is_compared(place):
    four, six = make_job(place, "four", "ranks=4"), make_job(place, "six", "ranks=6 late=5:20000")
    text = place.kymo("compare", "--by", "rank", four, six).stdout
    assert "No rank differs significantly" in text and "A has 4 ranks, B has 6: the 4 that both have are compared." in text, text
    text = " ".join(place.kymo("compare", four, six).stdout.split())
    assert "A has 4 ranks, B has 6: steps are those of one rank of each, times of regions the mean" in text, text
    assert "B is slower" in text  # all ranks wait for rank 5


@pytest.mark.parametrize("words, why", [
    (("--by", "host", "x"), "--by needs rank or attempt, not host"),
    (("--by", "rank", "x", "--", "y", "z"), "--by compares one job, or two"),
    (("--by", "rank", "x", "-f", "html", "-o", "x.html"), "--by works with text and json, not html"),
    (("--by", "rank", "x", "--total"), "--by works without --fail-above and --total"),
])
def test_wrong_comparisons_are_refused(place, words, why):
    done = place.kymo("compare", *words)
    assert done.returncode == 2 and why in done.stderr, done.stderr


def test_a_job_without_parts_to_compare_is_refused(place):
    job = make_job(place, "made", "ranks=2")
    done = place.kymo("compare", "--by", "attempt", job)
    assert done.returncode == 1 and "has one attempt: --by attempt needs two, or two jobs" in done.stderr, done.stderr
