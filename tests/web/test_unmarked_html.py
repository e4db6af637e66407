"""The HTML report of a Python program that marked nothing: its timeline is made of stack samples."""
import re
import sys

import pytest
from conftest import ROOT, Page

sys.path.append(str(ROOT / "tests/cli"))
from made import Made  # noqa: E402

PERIOD = 100_000_000
TRAIN, LOAD = "train (/app/2024/train.py:{})", "load (/app/2024/train.py:{})"


def stacks():
    """For each period: train is in load for a second, then works for a second, then is in load again."""
    for i in range(30):
        yield [LOAD.format(40 + i % 3), TRAIN.format(7)] if i // 10 != 1 else [TRAIN.format(8)]


@pytest.fixture(scope="module")
def report(pages):
    """report(name, fill): the report of a recording without zones, into which fill(rows) writes."""
    template = pages.folder / "template.kymo"
    assert pages.kymo("pack", pages.recording("train", "400"), template).returncode == 0

    def write(name, fill):
        path, file = pages.folder / f"{name}.kymo", pages.folder / f"{name}.html"
        with Made(template, path) as rows:
            fill(rows)
        done = pages.kymo("report", path, file)
        assert done.returncode == 0, done.stderr
        return file
    return write


def unmarked(rows):
    rows.zone("gc (generation 2)", 1_250_000_000, 20_000_000, source="python")
    rows.db.executemany("INSERT INTO python.samples (ts_ns, pid, tid, thread, stack, host) VALUES (?, ?, ?, 'MainThread', ?, 'box')",
                        [(i * PERIOD, rows.pid, rows.pid, stack) for i, stack in enumerate(stacks())])


@pytest.fixture(scope="module")
def shown(report, browser):
    one = Page(browser)
    one.open(report("unmarked", unmarked).as_uri())
    yield one
    one.close()


def pick(page, share, row):
    """Clicks at a share of the time, in a row of the first track; the drawer describes what is there."""
    page.tab("timeline")
    page.drawn()
    box = page.js("(({ x, y, width }) => ({ x, y, width }))(document.querySelector('.stage canvas').getBoundingClientRect())")
    page.mouse(box["x"] + 132 + (box["width"] - 132) * share, box["y"] + 48 + 4 + 16 * row + 8)
    said = page.says(".drawer", "source")
    return re.sub(r"\s+", " ", said)


def test_samples_in_a_row_are_one_zone_of_their_function(shown):
    # The run lasts 3.56 s. Lines do not count: load is on three of them.
    assert re.match(r"train source sample duration 3\.00 s thread MainThread .* where /app/2024/train.py", pick(shown, 0.4, 0))
    assert re.match(r"load source sample duration 1\.00 s ", pick(shown, 0.1, 1))
    assert "count 2 total 2.00 s" in pick(shown, 0.7, 1)


def test_a_garbage_collection_stays_what_was_recorded(shown):
    assert re.match(r"gc \(generation 2\) source python duration 20\.0 ms thread MainThread ", pick(shown, 1.26 / 3.5642, 1))


def test_the_legend_and_the_footer_say_that_zones_are_samples(shown):
    shown.tab("timeline")
    assert shown.text(".bar .legend").startswith("stack samples")
    assert "4 zones in this file, 3 of them made of stack samples, since the program marked nothing" in shown.text("footer")


def test_the_overview_lists_functions_with_the_names_of_their_files(shown):
    shown.tab("overview")
    assert shown.texts("table[aria-label='Functions by self samples'] tbody td:first-child") == [
        "python:\nload (train.py)", "python:\ntrain (train.py)"]
    assert shown.texts("h2 span") == ["samples of all threads; no marked zones"] * 2


def test_a_range_still_lists_functions(shown):
    shown.js("location.hash = '#/overview?t0=0&t1=1000000000'")
    assert shown.says("h1", "^0 ns – ").endswith("stack samples, no zones.")
    assert shown.texts("table[aria-label='Functions by total samples'] tbody td:first-child") == [
        "python:\ntrain (train.py)", "python:\nload (train.py)"]
    shown.js("location.hash = '#/overview'")
    assert shown.seen()["errors"] == []


def test_too_many_samples_are_thinned_evenly_and_the_report_says_so(report):
    def fill(rows):
        rows.db.execute("INSERT INTO python.samples (ts_ns, pid, tid, stack, host) "
                        "SELECT i * 1000, ?, ?, ['f' || i % 2 || ' (x.py:1)'], 'box' "
                        "FROM range(50000) AS t(i)", [rows.pid] * 2)
    file = report("thinned", fill)
    assert "16,667 zones in this file, 16,667 of them made of stack samples, since the program marked nothing; " \
           "33,333 samples are left out, evenly over the run" in file.read_text()
    assert file.stat().st_size < 400_000


def test_a_program_that_marked_a_zone_has_no_zones_of_samples(report):
    def fill(rows):
        unmarked(rows)
        rows.zone("step", 0, 1000)
    assert "2 zones in this file, complete and exact" in report("marked", fill).read_text()


def test_thin_parts_of_a_step_are_as_wide_as_their_share(pages, page, browser):
    file, _ = page("tour", "train", "400")
    one = Page(browser)
    one.open(file.as_uri())
    parts = one.js("""[...document.querySelectorAll('.part')].map((part) => [part.title, part.getBoundingClientRect().width])""")
    one.close()
    whole = sum(width for _, width in parts)
    assert len(parts) == 5
    for title, width in parts:
        share = float(re.search(r": ([\d.]+) %", title)[1]) / 100
        assert abs(width / whole - share) < 0.006, (title, width)
