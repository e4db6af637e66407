"""kymo lake align: clocks of hosts, by the calls that are in the lake."""
import json

import pytest


@pytest.fixture(scope="module")
def skewed(tmp_path_factory):
    """8 ranks on 4 hosts whose clocks are up to 5 s and 200 ppm apart; rank 5 is late by 3 ms. `correlation` has true ends."""
    from conftest import Place

    place = Place(tmp_path_factory.mktemp("align"))
    place.made("job", ranks=8, per_host=2, steps=300, clocks=1, late="5:3000")
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    place.kymo("lake", "add", "--run", "raw", "job", "lake")
    place.said = place.kymo("lake", "align", "lake/a").stderr
    return place


SPREAD = """SELECT max(s)::BIGINT FROM (
    SELECT max(end_ns - correlation::BIGINT) - min(end_ns - correlation::BIGINT) AS s FROM dist.collectives GROUP BY seq)"""


def test_aligned_calls_end_together_and_raw_ones_do_not(skewed):
    assert "clocks of 4 of 4 hosts aligned, within" in skewed.said
    assert skewed.value("lake/raw", SPREAD) > 50_000_000
    assert skewed.value("lake/a", SPREAD) < 1_000_000


def test_the_stated_error_covers_the_truth(skewed):
    wrong = skewed.ask("lake/a", """WITH c AS (SELECT rank, host, seq, end_ns - correlation::BIGINT AS off FROM dist.collectives),
        r AS (SELECT seq, median(off) AS off FROM c JOIN dist.clocks k USING (rank, host) WHERE k.method = 'same clock' GROUP BY seq)
        SELECT c.rank, max(abs(c.off - r.off)) AS off, any_value(k.error_ns) AS error_ns FROM c JOIN r USING (seq)
        JOIN dist.clocks k USING (rank, host) GROUP BY c.rank HAVING max(abs(c.off - r.off)) > any_value(k.error_ns) + 10000""")
    assert wrong == []


def test_the_late_rank_is_named_only_on_aligned_clocks(skewed):
    late = "SELECT rank FROM dist.late ORDER BY cost_ns DESC LIMIT 1"
    assert skewed.value("lake/a", late) == 5
    assert skewed.ask("lake/raw", "SELECT DISTINCT method FROM dist.clocks") == [{"method": "wall clock"}]
    sentences = json.loads(skewed.kymo("report", "-f", "json", "lake/a").stdout)["verdicts"]
    assert any("Rank 5" in v["sentence"] for v in sentences)


def test_a_lake_and_its_recordings_have_the_same_clocks(skewed):
    sql = "SELECT rank, method, applied, round(drift_ppm) AS ppm FROM dist.clocks ORDER BY rank"
    assert skewed.ask("lake/a", sql) == skewed.ask("job", sql)


def test_aligning_again_and_after_compaction_changes_nothing(skewed):
    before = skewed.ask("lake/a", "FROM dist.clocks ORDER BY ALL")
    skewed.kymo("lake", "compact", "lake/a")
    skewed.kymo("lake", "align", "lake/a")
    assert skewed.ask("lake/a", "FROM dist.clocks ORDER BY ALL") == before


def test_calls_that_are_paired_wrongly_are_refused(place):
    place.made("job", ranks=4, per_host=1, steps=200, clocks=1, swap=2)
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    said = place.kymo("lake", "align", "lake/a").stderr
    assert "clocks of 1 hosts are not aligned: their calls contradict causality" in said
    refused = place.ask("lake/a", "SELECT rank, applied, reason FROM dist.clocks WHERE method = 'refused'")
    assert [row["rank"] for row in refused] == [2] and "contradict causality" in refused[0]["reason"]


def test_a_job_without_ranks_is_refused_with_a_sentence(place):
    place.made("job", ranks=1, steps=3)
    place.kymo("lake", "add", "--run", "a", "--tier", "0", "job", "lake")
    done = place.kymo("lake", "align", "lake/a", good=False)
    assert done.returncode in (0, 1) and "internal" not in done.stderr
    assert place.value("lake/a", "SELECT count(*) FROM dist.clocks") == 1
