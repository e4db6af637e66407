"""Collectives of a real job, who is late at them, and who is absent."""
import importlib.util
import os
import re

import pytest

from conftest import Place

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed: make setup", allow_module_level=True)

TIMES = 3


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A recording of torchrun for each kind, made once."""
    made = {}

    def run(kind, ranks=2, again="", program="train.py"):
        if (kind, ranks, again) not in made:
            place = Place(tmp_path_factory.mktemp(f"{kind}{ranks}{again}"))
            place.done = place.torchrun(ranks, kind, "rec", program)
            made[kind, ranks, again] = place
        return made[kind, ranks, again]

    return run


def test_each_rank_has_a_row_of_each_collective(runs):
    place = runs("sleep")
    rows = place.ask("rec", "SELECT rank, op, bytes::INT AS bytes, dtype, members, group_size::INT AS size, count(*)::INT AS n, "
                            "count(DISTINCT seq)::INT AS seqs, count(end_ns)::INT AS ended, "
                            "bool_and(end_ns IS NULL OR start_ns IS NULL OR end_ns >= start_ns) AS ordered "
                            "FROM dist.collectives WHERE NOT p2p GROUP BY ALL ORDER BY op, rank")
    assert [(r["rank"], r["op"], r["bytes"], r["dtype"], r["members"], r["size"], r["n"], r["seqs"]) for r in rows] == [
        (0, "all_reduce", 1024, "float32", "0,1", 2, 25, 25), (1, "all_reduce", 1024, "float32", "0,1", 2, 25, 25),
        (0, "broadcast", 1024, "float32", "0,1", 2, 1, 1), (1, "broadcast", 1024, "float32", "0,1", 2, 1, 1)]
    assert all(r["ordered"] and r["ended"] == r["n"] for r in rows), rows
    groups = place.ask("rec", "SELECT op, count(DISTINCT group_name)::INT AS n FROM dist.collectives WHERE NOT p2p GROUP BY 1")
    assert {g["op"]: g["n"] for g in groups} == {"all_reduce": 1, "broadcast": 1}
    assert len(place.ask("rec", "SELECT DISTINCT group_name FROM dist.collectives WHERE NOT p2p")) == 2


def test_sends_and_receives_name_the_other_rank(runs):
    rows = runs("sleep").ask("rec", "SELECT rank, op, peer, bytes::INT AS bytes, end_ns IS NOT NULL AS ended "
                                    "FROM dist.collectives WHERE p2p ORDER BY rank, peer NULLS LAST")
    assert rows == [{"rank": 0, "op": "send", "peer": 1, "bytes": 1024, "ended": True},
                    {"rank": 0, "op": "send", "peer": 1, "bytes": 1024, "ended": True},
                    {"rank": 1, "op": "recv", "peer": 0, "bytes": 1024, "ended": True},
                    {"rank": 1, "op": "recv", "peer": None, "bytes": 1024, "ended": True}]


@pytest.mark.parametrize("kind, function", [("sleep", "pause"), ("data", "fetch_shard")])
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_late_rank_is_named_with_its_place(runs, kind, function, ranks):
    place = runs(kind, ranks)
    late = place.ask("rec", "FROM dist.late")[0]
    assert late["rank"] == 1 and late["times_last"] >= 20, late
    assert re.match(rf"{function} \(.*/train\.py:\d+\)", late["place"]), late
    # It slept 80 ms before each of 25 collectives.
    assert late["cost_ns"] > 20 * 60_000_000, late
    verdicts = place.verdicts("rec")
    assert re.match(r"Rank 1 is late: the other ranks wait for it for (> )?\d+ % of the time \(.*\)\.", verdicts["rank"]["sentence"])
    where = verdicts["rank"]["where"]
    assert where["function"] == function and where["file"].endswith("train.py") and where["line"] > 20, where


@pytest.mark.parametrize("ranks", [2, 4])
def test_no_rank_of_a_healthy_job_is_named(runs, ranks):
    for again in range(TIMES):
        verdicts = runs("even", ranks, str(again)).verdicts("rec")
        if not {"rank", "absent", "gil"} & set(verdicts):
            return
    raise AssertionError(verdicts)


def test_the_ranks_of_a_job_are_listed(runs):
    rows = runs("data", 4).ask("rec", "SELECT rank, ranks, local_rank, attempt, state, collectives > 20 AS some FROM dist.ranks")
    assert rows == [{"rank": rank, "ranks": 4, "local_rank": rank, "attempt": 0, "state": "ended", "some": True} for rank in range(4)]


def test_a_killed_rank_is_the_absent_one(runs):
    place = runs("killed")
    states = {r["rank"]: r for r in place.ask("rec", "SELECT rank, state, last_seq::INT AS last_seq FROM dist.ranks")}
    assert states[1]["last_seq"] < states[0]["last_seq"], states
    assert states[1]["state"] in ("lost", "killed"), states
    verdict = place.verdicts("rec")["absent"]
    sentence = verdict["sentence"]
    assert re.match(r"Rank 1 \((lost|killed)\) is absent: the other ranks wait for it in all_reduce for .*\.", sentence), sentence
    # They waited until the last of them ended, although torchrun and kymo ran on.
    (row,) = place.ask("rec", "SELECT max(duration_ns) AS run, (SELECT max(arrival_ns) FROM dist.collectives) AS arrived, "
                              "greatest((SELECT max(last_ns) FROM dist.ranks), (SELECT max(ts_ns) FROM host.process p "
                              "WHERE pid IN (SELECT pid FROM dist.ranks))) AS last FROM kymo.runs")
    assert row["last"] <= row["run"], row
    assert verdict["gain_pct"] * row["run"] / 100 <= max(row["last"] - row["arrived"], 0.002 * row["run"]) + 1e8, (verdict, row)


def test_a_rank_that_reduces_another_size_is_named_with_both_sizes(runs):
    """gloo ends such a job, or hangs."""
    verdicts = runs("size").verdicts("rec")
    assert verdicts["desync"]["sentence"] == \
        "Ranks disagree at collective 13: rank 1 calls all_reduce of 512 bytes, 1 other of 1,024."
    assert list(verdicts)[0] == "desync", list(verdicts)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two cores are needed")
def test_a_rank_whose_core_is_busy_is_late_where_it_computes(runs):
    for again in range(TIMES):  # other programs may take the other core as well
        place = runs("busy", again=str(again))
        verdicts = place.verdicts("rec")
        if verdicts.get("rank", {}).get("sentence", "").startswith("Rank 1 is late: "):
            assert verdicts["rank"]["where"]["function"] == "compute", verdicts["rank"]
            return
    raise AssertionError(place.ask("rec", "FROM dist.late"))


def test_a_stage_that_receives_late_is_not_the_late_rank(runs):
    """Rank 3 comes last in its group because rank 2 sends late: the wait in recv is not its own lateness."""
    place = runs("pipeline", 4, program="pipeline.py")
    late = place.ask("rec", "SELECT rank, times_last, cost_ns, regexp_extract(place, '^\\w+') AS function FROM dist.late")
    assert (late[0]["rank"], late[0]["function"]) == (2, "fetch_shard") and late[0]["cost_ns"] > 20 * 60_000_000, late
    verdict = place.verdicts("rec")["rank"]
    assert verdict["sentence"].startswith("Rank 2 is late: ") and verdict["where"]["function"] == "fetch_shard", verdict
    rows = place.ask("rec", "SELECT op, p2p, count(*)::INT AS n, count(DISTINCT group_name)::INT AS groups FROM dist.collectives "
                            "GROUP BY ALL ORDER BY op")
    assert [(row["op"], row["n"]) for row in rows] == [("all_reduce", 100), ("recv", 50), ("send", 50)], rows
    assert rows[0]["groups"] == 2


def test_sharded_parameters_are_gathered_and_scattered_once_each(runs):
    """FSDP: methods of gloo's backend call each other, _allgather_base() for example allgather(). Only the outermost is a call."""
    place = runs("fsdp", program="fsdp.py")
    assert place.done.returncode == 0, place.done.stderr
    rows = place.ask("rec", "SELECT op, rank, count(*)::INT AS n, count(end_ns)::INT AS ended, count(DISTINCT seq)::INT AS seqs "
                            "FROM dist.collectives GROUP BY ALL ORDER BY op, rank")
    assert [row["op"] for row in rows] == ["all_gather"] * 2 + ["reduce_scatter"] * 2, rows
    assert all(row["n"] == row["ended"] == row["seqs"] for row in rows), rows
    assert rows[2]["n"] == 15 * 2 and rows[0]["n"] == rows[1]["n"] > 15 * 2, rows  # 15 steps of two layers
    verdicts = place.verdicts("rec")
    assert "desync" not in verdicts, verdicts["desync"]
    assert verdicts["rank"]["sentence"].startswith("Rank 1 is late: ") and verdicts["rank"]["where"]["function"] == "load_batch"
