"""Programs in C: exact totals are the program's own, and samples estimate them."""
import pytest
from conftest import PROGS

LOAD = PROGS / "memory_load"
EXACT = ("--memory=exact",)


def totals(lab, path):
    """Allocations, their bytes, frees, their bytes, of what the program's own functions allocated."""
    sites = "site IN ('site_a', 'site_b', 'site_c', 'site_d', 'plain', 'mmap')"
    row, = lab.ask(path, f"SELECT count(*) FILTER (kind = 'alloc') AS n, sum(size) FILTER (kind = 'alloc') AS bytes, "
                         f"count(*) FILTER (kind = 'free') AS frees, sum(size) FILTER (kind = 'free') AS freed "
                         f"FROM alloc.allocations WHERE {sites}")
    return [int(row[key] or 0) for key in ("n", "bytes", "frees", "freed")]


def said(done):
    """What the program's own bookkeeping came to: its last line."""
    return [int(word) for word in done.stderr.split("\n")[-2].split()]


@pytest.mark.parametrize("words", [("plain",), ("threads", "4")])
def test_exact_totals_are_the_programs_own(lab, words):
    done, path = lab.run(LOAD, *words, options=EXACT)
    assert totals(lab, path) == said(done)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_what_was_live_at_the_peak_by_site_is_what_brute_force_finds(lab, seed):
    done, path = lab.run(LOAD, "walk", seed, options=EXACT)
    highest, *by_site = [int(word) for word in done.stderr.split("\n")[0].split()]
    assert int(lab.ask(path, "SELECT max(live_bytes) AS peak FROM alloc.timeline")[0]["peak"]) == highest
    found = {row["site"]: int(row["bytes"]) for row in
             lab.ask(path, "SELECT site, sum(at_peak_bytes) AS bytes FROM alloc.sites GROUP BY site")}
    assert [found[name] for name in ("site_a", "site_b", "site_c", "site_d")] == by_site


def test_what_is_never_freed_is_listed_with_its_age(lab):
    done, path = lab.run(LOAD, "plain", options=EXACT)
    rows = lab.ask(path, "SELECT site, count(*) AS n, sum(size) AS bytes, min(age_ns) > 0 AS aged FROM alloc.live "
                         "WHERE site LIKE 'site_%' OR site = 'plain' GROUP BY site ORDER BY site")
    assert [(r["site"], int(r["n"]), int(r["bytes"]), r["aged"]) for r in rows] == \
        [("plain", 1, 65536, True), ("site_a", 50, 50000, True)]
    assert done.returncode == 0


def test_samples_estimate_within_their_own_error(lab):
    """80,000 blocks of 200 bytes in 4 threads: 16 MB, some 244 samples. 5 standard deviations are never reached by chance."""
    done, path = lab.run(LOAD, "threads", "4")
    row, = lab.ask(path, "SELECT sum(size * weight) AS bytes, count(*) AS n FROM alloc.allocations "
                         "WHERE site = 'site_a' AND kind = 'alloc'")
    real = said(done)[1]
    assert 120 < int(row["n"]) < 500
    assert abs(row["bytes"] - real) < 5 * (65536 * real) ** 0.5
    source, = lab.ask(path, "SELECT DISTINCT source FROM alloc.timeline")
    assert source["source"] == "malloc, sampled, from the start"


def test_the_stack_has_the_callers_and_the_thread(lab):
    _, path = lab.run(LOAD, "plain", options=EXACT)
    row, = lab.ask(path, "SELECT DISTINCT stack[1:3] AS stack, tid = pid AS main FROM alloc.allocations WHERE site = 'site_b'")
    assert row["stack"] == ["site_b (memory_load)", "plain (memory_load)", "main (memory_load)"]
    assert row["main"]


def test_functions_of_cxx_are_named_as_they_are_written(lab):
    """The function that allocates is the one that says new, and not the operator that it means."""
    _, path = lab.run(PROGS / "memory_cxx")
    row, = lab.ask(path, "SELECT site, list_filter(stack, x -> x LIKE '%shelf%') AS shelf, stack[1] AS first FROM alloc.sites "
                         "WHERE allocated_bytes = 800000")
    assert row["site"] == "double* shop::shelf<double>(unsigned long)"
    assert row["shelf"] == ["double* shop::shelf<double>(unsigned long) (memory_cxx)"]
    assert row["first"].startswith("operator new")
    named = lab.ask(path, "SELECT func FROM alloc.frames WHERE func LIKE '%shelf%'")
    assert named == [{"func": "double* shop::shelf<double>(unsigned long)"}]


def test_a_long_name_of_cxx_is_readable_too(lab):
    """As the linker has it, it has 1,000 bytes."""
    _, path = lab.run(PROGS / "memory_cxx")
    row, = lab.ask(path, "SELECT site FROM alloc.sites WHERE allocated_bytes = 900000")
    assert row["site"] == f"char* shop::crate<{', '.join(f'{n}l' for n in range(1000000, 1000100))}>(unsigned long)"


def test_a_million_rows_are_within_what_a_query_may_have(lab):
    """1,200,000 rows: counted, summed by site, the largest of them. A fifth of the limit of 1 GiB suffices, whatever the machine."""
    done, path = lab.run(LOAD, "threads", "30", options=EXACT)
    n, size = said(done)[:2]
    for sql, want in (("SELECT count(*) AS n FROM alloc.allocations WHERE kind = 'alloc' AND site = 'site_a'", {"n": n}),
                      ("SELECT sum(size) AS n FROM alloc.allocations WHERE kind = 'alloc' GROUP BY site ORDER BY 1 DESC LIMIT 1",
                       {"n": size}),
                      ("SELECT count(*) AS n FROM (SELECT * FROM alloc.allocations ORDER BY size DESC, ts_ns LIMIT 10)", {"n": 10})):
        assert {k: int(v) for k, v in lab.ask(path, sql)[0].items()} == want


def test_what_a_thread_allocates_and_frees_as_it_ends_has_its_rows(lab):
    """In a destructor of its own, which runs after those of libraries that were there first."""
    done, path = lab.run(LOAD, "late", "50", options=EXACT)
    assert said(done) == [100, 35000, 100, 35000]
    assert totals(lab, path) == said(done)
    assert lab.ask(path, "SELECT * FROM alloc.live WHERE site = 'site_a'") == []


def test_what_is_freed_at_once_is_churn_and_what_is_kept_is_not(lab):
    """site_b frees each of its 100 blocks of 5,000 bytes at once; how many within a millisecond is the machine's affair."""
    _, path = lab.run(LOAD, "plain", options=EXACT)
    found = {row["site"]: int(row["churn_bytes"]) for row in lab.ask(path, "SELECT site, churn_bytes FROM alloc.sites")}
    assert 5000 <= found["site_b"] <= 500_000 and found["site_b"] % 5000 == 0
    assert found["site_a"] <= 50_000  # the other half is never freed
