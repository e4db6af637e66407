"""docs/performance.md and its picture: made of the same values, by bench/run."""
import importlib.util
import sys
import xml.etree.ElementTree as xml
from importlib.machinery import SourceFileLoader

import pytest
from conftest import ROOT

TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.fixture(scope="module")
def bench():
    """bench/run as a module."""
    sys.path.append(str(ROOT / "bench"))
    loader = SourceFileLoader("bench_run", str(ROOT / "bench/run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    loader.exec_module(module)
    sys.path.pop()
    return module


VALUES = {"zone.flight.one.1": [1.2], "zone.flight.one.1.ns": [24.0], "zone.flight.one.1.base_ns": [20.0], "peer.lttng.ns": [240.0],
          "zone.flight.eight.1": [1.2504], "alloc.malloc": [0], "python.3.12.kymo.ns": [50.0], "python.3.12.yappi.ns": [400.0]}


def drawn(bench, samples):
    values = bench.Values(samples, {})
    return bench.picture(values.values(), bench.results(values, bench.GROUPS))


def words_of(picture):
    return [element.text for element in xml.fromstring(picture).iter(TEXT)]


def test_peers_are_in_times_of_kymo(bench):
    words = words_of(drawn(bench, VALUES))
    at = words.index("A zone in C")
    assert words[at:at + 2] == ["A zone in C", "kymo 24.0 ns"]
    assert words[words.index("LTTng-UST") + 1] == "240 ns, 10.0 ×"
    assert words[words.index("the floor: clock twice, 32 bytes") + 1] == "20.0 ns, 0.83 ×"
    assert words[words.index("uftrace, a call") + 1] == "not measured"
    at = words.index("A call of Python 3.12")
    assert words[at + 1] == "kymo 50.0 ns" and "400 ns, 8.00 ×" in words[at:]


def test_bars_that_are_missed_are_told_apart(bench):
    picture = drawn(bench, VALUES)
    assert picture.count('<circle') == 3 and picture.count('r="4" class="bad"') == 1
    words = words_of(picture)
    assert words[words.index("A zone while recording, with exact totals") + 1] == "1 of 6"


def test_the_same_values_give_the_same_bytes_and_none_give_a_picture_too(bench):
    assert drawn(bench, VALUES) == drawn(bench, dict(reversed(VALUES.items())))
    assert "not measured" in words_of(drawn(bench, {}))


def test_what_a_bar_is_missed_by_is_seen(bench):
    values = bench.Values(VALUES, {})
    (line,) = [line for _, lines in bench.results(values, ["zone"]) for line in lines if line.row.key == "zone.flight.eight.1"]
    assert (line.shown, line.bar, line.verdict) == ("1.2504 ×", "≤ 1.25", "MISSED")


def test_the_page_and_the_readme_show_it():
    assert "](performance.svg)" in (ROOT / "docs/performance.md").read_text()
    assert "](docs/performance.svg)" in (ROOT / "README.md").read_text()
    xml.parse(ROOT / "docs/performance.svg")
