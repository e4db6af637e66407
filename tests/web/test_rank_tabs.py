"""The rank picker in Memory, Metrics, Source, Compare and SQL: two jobs of two ranks each; rank 1 holds more memory and is slower in
the second job."""
import os
import subprocess
import sys

import pytest
from conftest import KYMO, Page, Viewer

PROGRAM = """
import os, time, kymo
rank, slow = int(os.environ["RANK"]), float(os.environ["SLOW"])
kept = []

def little():
    kept.append(bytearray(100_000))
    time.sleep(0.01)

def much():
    kept.append(bytearray(3_000_000))
    time.sleep(0.01 + slow)

for number in range(60):
    kymo.step()
    (much if rank else little)()
"""
LITTLE, MUCH = 7, 11  # lines that allocate


def run_job(folder, env, slow):
    def rank(number):
        more = {"RANK": str(number), "WORLD_SIZE": "2", "SLOW": slow, "KYMO_JOB": f"job-{slow}", "KYMO_SAMPLE_RATE": "0.01",
                "PYTHONPATH": os.fspath(KYMO.parent / "python")}
        return subprocess.Popen([KYMO, "run", "-q", "--memory", "-o", f"{folder}/jobs/", "--", sys.executable, folder / "rank.py"],
                                env={**env, **more}, cwd=folder, stderr=subprocess.PIPE, text=True)
    return [rank(number) for number in range(2)]


@pytest.fixture(scope="module")
def viewer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tabs")
    (folder / "live").mkdir(mode=0o700)
    (folder / "rank.py").write_text(PROGRAM)
    env = {**os.environ, "KYMO_DIR": str(folder / "live"), "HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    for one in [child for slow in ("0", "0.02") for child in run_job(folder, env, slow)]:
        said = one.communicate(timeout=100)[1]
        assert one.returncode == 0, said
    made = Viewer(folder, *sorted((folder / "jobs").iterdir()))
    yield made
    made.close()


@pytest.fixture(scope="module")
def page(viewer, browser):
    one = Page(browser)
    one.open(viewer.url)
    yield one
    one.close()


@pytest.fixture(scope="module")
def ids(page):
    told = page.js("fetch('/api/targets').then((answer) => answer.json())")
    return {target["path"].split("/")[-1]: target["id"] for target in told["targets"]}


@pytest.fixture(scope="module")
def show(page, ids):
    def go(tab, query=""):
        page.js(f"location.hash = '#/{ids['job-0']}/{tab}{query}'")
        page.until(f"document.querySelector('#tab-{tab}')?.getAttribute('aria-selected') === 'true'")
        page.until("!document.querySelector('main [aria-busy]')")
    return go


def test_memory_is_that_of_the_chosen_ranks(show, page):
    sites = {}
    for ranks in ("0", "1", ""):
        show("memory", f"?ranks={ranks}" if ranks else "")
        if ranks:
            page.says(".of-ranks", f"^Rank {ranks}\\.")
        page.until("document.querySelectorAll('table[aria-label=\"Call sites\"] tbody tr').length > 0")
        sites[ranks] = " ".join(page.texts("table[aria-label='Call sites'] tbody tr"))
    little, much = f"rank.py:{LITTLE}", f"rank.py:{MUCH}"
    assert (little in sites["0"], much in sites["0"]) == (True, False), sites["0"]
    assert (little in sites["1"], much in sites["1"]) == (False, True), sites["1"]
    assert little in sites[""] and much in sites[""]
    show("metrics", "?ranks=1")
    page.says(".of-ranks", "^Rank 1\\.")


# Rank 0 may have ended when rank 1 is at its peak: then both have the peak of rank 1.
def test_resident_memory_of_all_ranks_is_more_than_that_of_one(ids, page):
    def peak(ranks):
        answer = page.js(f"fetch('/api/range?target={ids['job-0']}&from=0&to=9000000000&ranks={ranks}').then((one) => one.json())")
        return answer["memory_facts"][0]["peak_bytes"], {one["name"] for one in answer["series"]}
    (first, names), (second, _), (both, _) = peak("0"), peak("1"), peak("0-1")
    assert first + 100_000_000 < second <= both, (first, second, both)
    assert "Resident memory" in names


def test_source_has_the_lines_of_the_chosen_ranks(show, page):
    for rank, own, other in ((0, LITTLE, MUCH), (1, MUCH, LITTLE)):
        show("source", f"?ranks={rank}")
        page.says(".notes .tested", f"^Of rank {rank}\\.")
        page.says(".path", "rank\\.py$")
        found = page.js(f"fetch('/api/source?target=' + location.hash.split('/')[1] + '&ranks={rank}&file=' + encodeURIComponent("
                        "document.querySelector('.path').innerText)).then((answer) => answer.json())")
        lines = {line[0] for line in found["lines"]}  # those that allocate, at least
        assert own in lines and other not in lines, (rank, lines)


def test_compare_is_of_the_chosen_ranks_on_both_sides(show, ids, page):
    for rank, said in ((0, "No significant difference|B is"), (1, "B is slower: a step takes [23]\\.")):
        show("compare", f"?a={ids['job-0']}&b={ids['job-0.02']}&ranks={rank}")
        page.says(".picks .of-ranks", f"^Rank {rank} of both")
        page.says(".verdict h1", said)
    show("compare", f"?a={ids['job-0']}&b={ids['job-0.02']}&ranks=7")
    page.says(".verdict", "has none of the chosen ranks")


def test_sql_reads_all_ranks_until_a_condition_is_inserted(show, page):
    sql = "SELECT DISTINCT rank FROM trace.steps ORDER BY rank"
    show("sql", f"?ranks=1&q={sql.replace(' ', '%20')}")
    page.until("document.querySelectorAll('.results tbody tr').length === 2")
    button = "[...document.querySelectorAll('.tools .button')].find((one) => /rank/i.test(one.innerText))"
    assert page.js(f"{button}.innerText") == "All ranks are read: + WHERE rank = 1"
    page.js(f"{button}.click()")
    page.until("document.querySelectorAll('.results tbody tr').length === 1")
    assert page.js("document.querySelector('.editor textarea').value") == \
        "SELECT DISTINCT rank FROM trace.steps\nWHERE rank = 1\nORDER BY rank"
    assert page.js(f"{button}.innerText") == "Rank 1" and page.texts(".results tbody tr") == ["1"]
    page.tab("overview")
    show("sql", "?ranks=0")  # the condition follows the choice
    page.until("document.querySelector('.results tbody')?.innerText.trim() === '0'")
    page.shot("rank-tabs-sql")


def test_nothing_failed(page):
    seen = page.seen()
    assert [text for text in seen["errors"] if "400 (Bad Request)" not in text] == []
    assert [one for one in seen["refused"] if "ranks=7" not in one] == []
