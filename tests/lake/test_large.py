"""Jobs of many ranks that made_lake.py writes: what is wrong with them is named, and nothing in clean ones.
KYMO_LAKE_RANKS=10000 makes the large one larger."""
import os
import pathlib
import re

import pytest

pytest.importorskip("duckdb")

import made_lake  # noqa: E402
from conftest import KYMO, ROOT  # noqa: E402

RANKS = int(os.environ.get("KYMO_LAKE_RANKS", 1000))
FAULTS = {"straggler": 5, "absent": 9, "hung": 170, "leak": 33, "losses": 400}


def findings():
    text = pathlib.Path(ROOT, "tests/spark/findings.sql").read_text()
    return dict(re.findall(r"^-- (\w+)\n([^;]*);", text, re.M))


def found(place, target):
    every = " UNION ALL ".join(f"SELECT '{name}' AS name, rank FROM ({sql})" for name, sql in findings().items())
    rows = place.ask(target, f"{every} ORDER BY ALL")
    return {name: [row["rank"] for row in rows if row["name"] == name] for name in findings()}


def test_every_fault_of_a_thousand_ranks_is_named_and_nothing_else(place):
    made_lake.make(KYMO, place.path / "lake", "a", ranks=RANKS, steps=40, clocks=1, **FAULTS)
    said = place.kymo("lake", "align", "lake/a").stderr
    assert f"clocks of {RANKS // 8:,} of {RANKS // 8:,} hosts aligned" in said
    assert found(place, "lake/a") == {**{name: [rank] for name, rank in FAULTS.items()}, "clocks": list(range(8, RANKS, 8))}
    checked = place.kymo("lake", "check", "lake/a", good=False).stdout
    assert "rank 9 wrote nothing" in checked and re.search(r"trace\.steps .* 1,000 ", checked)


def test_nothing_is_found_in_twenty_clean_jobs(place):
    for seed in range(20):
        made_lake.make(KYMO, place.path / "lake", f"j{seed}", ranks=32, steps=30, seed=seed + 100)
        assert found(place, f"lake/j{seed}") == {name: [] for name in findings()}, seed
        if not seed % 5:
            assert place.kymo("lake", "check", f"lake/j{seed}").returncode == 0


def test_a_merged_job_answers_as_one_of_a_file_for_each_host(place):
    for job, merged in (("hosts", 0), ("merged", 1)):
        made_lake.make(KYMO, place.path / "lake", job, ranks=64, steps=20, zones=3, samples=2, merged=merged, straggler=5)
    for sql in ("SELECT count(*), sum(duration_ns), count(DISTINCT rank) FROM trace.zones", "FROM dist.late ORDER BY ALL",
                "SELECT * FROM trace.steps ORDER BY ALL"):
        assert place.ask("lake/hosts", sql) == place.ask("lake/merged", sql), sql
    assert [p.name for p in (place.path / "lake/trace.zones/run=merged").iterdir()] == ["compact-0000000000000001.parquet"]
