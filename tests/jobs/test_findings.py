"""What the report finds in a job: made jobs with one fault each, and without."""
import concurrent.futures
import statistics
import subprocess

import pytest
from conftest import NATIVE, make_job
from made_jobs import CLEAN, LATE, is_right, noisy


def found(place, name, words):
    return place.verdicts(make_job(place, name, words))


def test_stragglers_are_right_in_all_noisy_jobs_and_none_is_named_in_clean_ones(place):
    cases = [(number, *case) for number, case in enumerate(noisy())]

    def run(case):
        number, late, words = case
        verdicts = found(place, f"job{number}", words)
        return is_right(late, verdicts), words, verdicts.get("rank")

    with concurrent.futures.ThreadPoolExecutor(2) as two:
        wrong = [(words, named) for right, words, named in two.map(run, cases) if not right]
    assert wrong == [] and len(cases) == LATE + CLEAN


def test_the_place_is_what_other_ranks_do_not_do(place):
    """It fetches first and then computes as long as the others: the last thing before its arrival is not the cause."""
    verdict = found(place, "made", "ranks=4 late=2:5000 samples=1")["rank"]
    assert verdict["sentence"].startswith("Rank 2 on host host2 is late: ")
    assert (verdict["where"]["function"], verdict["where"]["file"], verdict["where"]["line"]) == ("fetch_shard", "/w/data.py", 41)
    text = place.kymo("report", place.path / "made").stdout
    assert "Rank 2 on host host2 is late" in text and "fetch_shard  data.py:41" in text, text


def test_a_slow_host_is_named_not_one_of_its_ranks(place):
    verdicts = found(place, "made", "ranks=8 per_host=4 slow=1:30 clocks=1")
    assert verdicts["slow_host"]["sentence"].startswith("All ranks of host host1 are late: the other hosts wait for them for ")
    assert "rank" not in verdicts
    assert "slow_host" not in found(place, "one", "ranks=8 per_host=4 late=5:6000")


@pytest.mark.parametrize("words", ["ranks=24 per_host=3 slow=5:40 steps=60", "ranks=9 per_host=8 slow=0:50 steps=50",
                                   "ranks=12 per_host=2 slow=3:8 noise_us=1000"])
def test_the_cost_of_a_slow_host_is_from_the_median_of_the_other_hosts(place, words):
    """Also for the largest of two hosts, whose ranks are most of the job."""
    job = make_job(place, "made", words)
    said = place.verdicts(job)["slow_host"]
    slow = "host" + words.split("slow=")[1].split(":")[0]
    calls = {}
    for row in place.ask(job, "SELECT seq, host, arrival_ns FROM dist.collectives WHERE seq > 1"):
        calls.setdefault(row["seq"], []).append(row)
    behind = []
    for rows in calls.values():
        others = sorted(row["arrival_ns"] for row in rows if row["host"] != slow)
        behind.append(min(row["arrival_ns"] for row in rows if row["host"] == slow) - others[(len(others) - 1) // 2])
    (span,) = place.ask(job, "SELECT max(end_ns) - min(arrival_ns) AS ns FROM dist.collectives")
    assert said["sentence"].startswith(f"All ranks of host {slow} are late: "), said
    assert said["gain_pct"] == pytest.approx(100 * sum(max(one, 0) for one in behind) / span["ns"], rel=1e-9)
    assert statistics.median(behind) > 0


def test_the_calls_of_a_large_job_are_read_in_blocks(place):
    """More than 2^20 calls: every second block. Rank 3 is 4 ms late in a fifth of the collectives; all have 0.1 ms of noise."""
    subprocess.run([NATIVE / "made_job", place.path / "made", "4", "270000", "calls"], check=True, timeout=60)
    rows = place.ask("made", "SELECT rank, collectives, cost_ns / 1e9 AS cost FROM dist.late")
    assert rows[0]["rank"] == 3 and 54 * 4 < rows[0]["cost"] < 54 * 4 * 1.05, rows
    assert all(abs(row["collectives"] - 270_000) <= 128 for row in rows), rows


def test_uneven_data_is_told_from_other_lateness(place):
    verdict = found(place, "made", "ranks=4 data=2:6000 samples=1")["uneven_data"]
    assert verdict["sentence"].startswith("Data is uneven: rank 2 on host host2 waits ")
    assert verdict["where"]["function"] == "fetch_shard"
    assert "uneven_data" not in found(place, "late", "ranks=4 late=2:6000")


def test_communication_that_is_not_hidden(place):
    exposed = found(place, "made", "ranks=4 comm_us=6000")["exposed"]["sentence"]
    assert exposed.startswith("Communication is not hidden: collectives take 3")
    assert "exposed" not in found(place, "late", "ranks=4 late=2:6000")


def test_ranks_that_disagree_are_named_with_both_calls(place):
    verdicts = found(place, "op", "ranks=4 desync=2 samples=1")
    assert list(verdicts)[0] == "desync"  # before the end by SIGKILL
    assert verdicts["desync"]["sentence"] == \
        "Ranks disagree at collective 101: rank 2 on host host2 calls all_gather, 3 others all_reduce."
    assert verdicts["desync"]["where"]["function"] == "reduce_gradients"
    assert found(place, "size", "ranks=4 size=1")["desync"]["sentence"] == \
        "Ranks disagree at collective 101: rank 1 on host host1 calls all_reduce of 524,288 bytes, 3 others of 1,048,576."


def test_an_absent_rank_comes_before_the_end_of_the_others(place):
    verdicts = found(place, "made", "ranks=4 absent=2 samples=1")
    assert list(verdicts)[:2] == ["absent", "ended"]
    assert verdicts["absent"]["sentence"].startswith(
        "Rank 2 on host host2 (killed) is absent: the other ranks wait for it in all_reduce")
    assert verdicts["absent"]["where"]["function"] == "fetch_shard"
