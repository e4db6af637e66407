"""kymo compare as a page in a browser: what is drawn, in which order, what is searched, what stays inert."""
import json
import pathlib
import re

import pytest


@pytest.fixture(scope="module")
def sides(pages):
    """A training run, and one whose softmax takes three times as long and whose optimizer a third."""
    return pages.recording("train", "400"), pages.recording("train", "400", "300", "7")


@pytest.fixture(scope="module")
def file(pages, sides):
    path = pages.folder / "compare.html"
    done = pages.kymo("compare", *sides, "-o", path)
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(rf"kymo: {path}, \d+ kB\n", done.stderr)
    return path


@pytest.fixture(scope="module")
def seen(pages, file):
    return pages.look("compared", file)


def test_it_opens_without_an_error_and_without_the_network(seen):
    assert seen["open"]["ready"] == "yes" and seen["title"] == "Compare · train-400 · train-400-300-7 · kymo"
    assert (seen["errors"], seen["requests"]) == ([], [])


def test_the_verdict_comes_first_with_its_interval_and_its_causes(seen):
    assert seen["verdict"] == "B is slower: a step takes 1.109 times as long (95 % interval 1.037 to 1.186)."
    assert seen["because"] == ("Because: aten::softmax 3.00 ×, aten::_fused_adam_ 0.28 ×; no other difference is "
                               "significant. 27 tests, Holm-corrected, weighted by time.")
    assert seen["sides"] == ["A train-400 400 steps", "B train-400-300-7 400 steps"]


def test_throughput_memory_and_the_detectable_change_are_figures(seen):
    assert [figure.split("\n")[0] for figure in seen["figures"]] == [
        "Step, mean", "Steps per second", "Peak memory", "Significant", "Detectable"]
    assert seen["figures"][1:] == ["Steps per second\n114 → 103× 0.902", "Peak memory\n2.87 GB → 2.87 GB× 1.000",
                                   "Significant\n3of 27 tested", "Detectable\n15 %of a step"]
    assert seen["footer"].startswith("A 56,432 zones and steps · none lost\nB 56,440 zones and steps · none lost\n")


def test_rows_come_by_what_matters_and_real_ones_first(seen):
    assert seen["names"][:4] == ["step", "aten::softmax", "aten::_fused_adam_", "queue.get (wait)"]
    assert seen["ratios"][:3] == ["▲ 1.109", "▲ 3.004", "▼ 0.284"] and not re.search("[▲▼]", "".join(seen["ratios"][3:]))


def test_intervals_are_drawn_and_noise_is_grey(seen):
    assert [tone.split()[1] for tone in seen["tones"][:4]] == ["slower", "slower", "faster", "muted"]
    assert set(tone.split()[1] for tone in seen["tones"][3:]) == {"muted"} and len(seen["tones"]) == len(seen["names"])
    line, dot = seen["bars"]
    assert 92 < dot < line + 4, "three times as long: right of the middle, on its line"


def test_a_click_sorts_and_typing_filters(seen):
    down = [float(ratio.strip("▲▼ ")) for ratio in seen["byRatio"]]
    up = [float(ratio.strip("▲▼ ")) for ratio in seen["byRatioUp"]]
    assert down == sorted(down, reverse=True) and up == sorted(up) and down[0] == 3.004
    assert seen["filtered"] == ["aten::softmax"]


def test_the_flame_graph_is_red_and_blue_and_is_searched(seen):
    assert seen["flame"] > 10 and seen["red"] > 500 and seen["blue"] > 100
    assert seen["found"] == "5.9 % in 2 frames" and seen["dimmed"] and seen["back"]
    assert seen["tip"].startswith("fetch_batch (python): 9.55 ms in A, 9.55 ms in B, ")
    assert seen["tip"].endswith("(not significant)") and seen["said"].startswith("Dataset.__getitem__ (python): ")


def test_the_address_holds_what_is_shown(seen):
    assert seen["address"] == "#/compare?show=flame" and seen["again"] == 27


def test_nothing_scrolls_sideways(seen):
    assert (seen["overflow"], seen["narrow"]) == (False, False)


def test_names_are_data(seen, file):
    assert (seen["hacked"], seen["scripts"]) == (None, 3)
    assert "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>" in seen["names"]
    text = file.read_text()
    assert "</script><script>window.hacked" not in text and "\\u003c/script>\\u003cscript>window.hacked=1" in text


def test_the_page_holds_the_document_that_json_prints(pages, sides, file):
    done = pages.kymo("compare", *sides, "-f", "json")
    block = re.search(r'id="kymo-data">(.*?)</script>', file.read_text(), re.S)[1]
    assert json.loads(block)["compare"] == json.loads(done.stdout)
    assert set(json.loads(done.stdout)["flame"]) == {"name", "source", "parent", "a_self", "b_self", "a_total", "b_total"}


def test_what_cannot_be_compared_is_said_on_the_page(pages, sides):
    path = pages.folder / "refused.html"
    done = pages.kymo("compare", sides[0], pages.recording("spread"), "-f", "html", "-o", path)
    assert done.returncode == 1 and "\nkymo compare: cannot compare: A is a recording of train.py" in done.stderr
    seen = pages.look("refused", path)
    assert seen["verdict"] == "These recordings are not comparable." and seen["tables"] == 0
    assert seen["because"].startswith("Because: A is a recording of train.py, B (") and seen["errors"] == []


def test_a_file_of_another_kind_is_not_replaced(pages, sides, file):
    other = pathlib.Path(file).with_name("notes.html")
    other.write_text("mine")
    done = pages.kymo("compare", *sides, "-o", other)
    assert done.returncode == 1 and other.read_text() == "mine" and "--force" in done.stderr
    assert pages.kymo("compare", *sides, "-o", other, "--force").returncode == 0 and other.stat().st_size > 50_000
    assert pages.kymo("compare", *sides, "-o", other).returncode == 0, "one of ours may go"
