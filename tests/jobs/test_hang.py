"""`kymo backtrace --why JOB`: which rank the others wait for, from made jobs with one fault each. test_hosts.py has a real one."""
import json

from conftest import make_job


def why(place, job, *words):
    done = place.kymo("backtrace", "--why", job, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_absent_rank_is_named_with_what_it_does_and_who_waits(place):
    assert why(place, make_job(place, "made", "ranks=4 absent=2 samples=1")) == """\
Rank 2 on host host2 was not in all_reduce 101, in which 3 ranks waited for
20.0 s before the end.

  rank 2  host host2, pid 100, killed
      fetch_shard  data.py:41 for 20.0 s
      last left all_reduce 100, 20.0 s before the end, in step 100
  ranks 0, 1, 3  waited in all_reduce 101 for 20.0 s
      reduce_gradients  train.py:22
"""


def test_a_first_collective_whose_end_was_not_seen_is_no_wait(place):
    """DDP's first all_reduce may have begun before its work is watched. A later one that has ended shows that it ended."""
    job = make_job(place, "made", "ranks=4 absent=2 samples=1 unseen=1")
    assert why(place, job).startswith("Rank 2 on host host2 was not in all_reduce 101, in which 3 ranks waited for\n20.0 s ")
    rows = place.ask(job, "SELECT seq::INT AS seq, state, count(*)::INT AS n FROM dist.collectives WHERE end_ns IS NULL "
                          "GROUP BY ALL ORDER BY 1")
    assert rows == [{"seq": 1, "state": "completed", "n": 4}, {"seq": 101, "state": "started", "n": 3}]
    ended = make_job(place, "ended", "ranks=4 unseen=1")
    assert why(place, ended) == "No rank waited in a collective at the end.\n\n  ranks 0-3  ended\n"


def test_a_rank_in_another_collective_is_named_with_both(place):
    job = make_job(place, "made", "ranks=4 desync=2 samples=1")
    text = why(place, job)
    assert text.startswith("Ranks disagree at collective 101: rank 2 on host host2 calls all_gather, the\nothers all_reduce.\n"), text
    assert "      was in all_gather 101 for 20.0 s\n" in text
    found = json.loads(why(place, job, "--json"))
    assert [(one["rank"], one["role"], one["in"]["op"]) for one in found["ranks"]] == [
        (2, "differs", "all_gather"), (0, "waits", "all_reduce"), (1, "waits", "all_reduce"), (3, "waits", "all_reduce")]
    assert found["live"] is False and found["ranks"][0]["where"]["function"] == "reduce_gradients"
    size = why(place, make_job(place, "size", "ranks=4 size=1"))
    assert size.startswith("Ranks disagree at collective 101: rank 1 on host host1 calls all_reduce of\n524,288 bytes, the others of "
                           "1,048,576.\n"), size


def test_many_ranks_fit_on_one_screen(place):
    text = why(place, make_job(place, "made", "ranks=64 absent=40 samples=1"))
    lines = text.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80, text
    assert "  ranks 0-39, 41-63  waited in all_reduce 101 for 20.0 s" in lines


def test_a_job_that_does_not_hang_and_a_program_that_is_no_job(place):
    text = why(place, make_job(place, "made", "ranks=4 samples=1"))
    assert text == "No rank waited in a collective at the end.\n\n  ranks 0-3  ended\n"
    assert place.kymo("run", "-q", "-o", "one", "--", "true").returncode == 0
    done = place.kymo("backtrace", "--why", "one")
    assert done.returncode == 1 and "--why needs a running program" in done.stderr, done.stderr
