"""The HTML report in a browser: what is drawn, what moves, what stays inert."""
import json
import math
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def tour(page):
    return page("tour", "train", "400")[1]


def test_it_opens_without_an_error_and_without_the_network(tour):
    assert tour["open"]["ready"] == "yes"
    assert (tour["errors"], tour["requests"]) == ([], [])


def test_the_first_screen_says_where_the_time_goes_and_fits(tour):
    assert tour["verdict"] == "Data loading holds up training: it takes 23 % of step time (809 ms of 3.48 s)."
    assert tour["figures"] == ["Steps", "Step, median", "Throughput", "Processor", "Peak memory", "Slow steps"]
    assert tour["overflow"] == [False, False], "no scrolling at 1280 x 720"
    assert tour["chart"] > 20, "the step chart is drawn"


def test_the_numbers_of_a_verdict_lead_to_what_shows_them(page):
    seen = page("links", "region")[1]
    assert [one["number"] for one in seen["links"]] == ["17.1 s", "86 %", "1,900"]
    for one in seen["links"]:
        assert (one["href"], one["tab"], one["find"]) == ("#/flame?find=simulate", "tab-flame", "simulate")
        assert one["sql"] == "FROM trace.regions ORDER BY self_ns DESC" and "in 1 frame" in one["bar"]


def test_a_range_has_figures_and_regions_of_its_own(page, pages):
    _, seen = page("ranged", "train", "400")
    asked = (f"SELECT name, count(*)::INT AS n FROM trace.zones WHERE start_ns < {seen['to']} AND start_ns + duration_ns > "
             f"{seen['from']} GROUP BY name, source")
    answer = pages.kymo("query", "-f", "json", pages.recording("train", "400"), asked).stdout
    counts = {row["name"]: row["n"] for row in json.loads(answer)}
    shown = {name: int(n.replace(",", "")) for name, _, _, n, *_ in seen["regions"]}
    assert shown == {name: counts[name] for name in shown}
    assert re.fullmatch(rf"\S+ m?s – \S+ m?s: {sum(counts.values()):,} zones of 5 threads\.", seen["said"])
    assert [one.split("\n")[0] for one in seen["figures"]] == ["Range", "Regions", "Zones", "Processor", "Peak memory", "Threads"]
    # A third of the time has a third of the calls, and its shares are those of the whole, nearly.
    whole = {row[0]: float(row[2]) for row in seen["whole"]}
    assert all(abs(float(share) - whole[name]) < 5 for name, _, share, *_ in seen["regions"][:5])
    assert (seen["address"], seen["errors"]) == ("#/overview", [])


def test_losses_and_overhead_are_in_the_footer(tour):
    assert tour["footer"].startswith("Rows 57,632 kept of 57,632 · none lost\nOverhead 0.03 % of the run\nClock ")
    assert "emitted = kept + overwritten + dropped" in tour["streams"]


def test_a_click_on_a_head_sorts_and_a_second_turns_it_round(tour):
    down = [int(n.replace(",", "")) for n in tour["byCount"]]
    up = [int(n.replace(",", "")) for n in tour["byCountUp"]]
    assert down == sorted(down, reverse=True) and up == sorted(up) and down[0] == 12800 and up[0] == 4
    assert tour["bySelf"][0].endswith("decode_jpeg")


def test_the_timeline_is_drawn_and_zoomed_by_wheel_and_keys(tour):
    assert tour["timeline"] > 10
    assert tour["wheel"] and tour["keys"] and tour["fit"]


def test_a_zone_is_selected_read_out_and_left_for_its_child(tour):
    assert tour["drawer"] == "forward" and tour["child"] == "GPT"
    assert re.fullmatch(r"forward, python, 2\.\d\d ms, thread MainThread", tour["said"])


def test_the_flame_graph_is_searched(tour):
    assert tour["flame"] > 10
    assert tour["found"] == "13 % in 3 frames"


def test_memory_and_metrics_are_charts_and_what_is_missing_says_how(tour):
    assert tour["memory"]["chart"] > 10 and "Peak, resident\n2.87 GB" in tour["memory"]["text"]
    assert tour["metrics"]["chart"] > 10 and "loss" in tour["metrics"]["text"]
    assert "kymo run --torch" in tour["torch"]["text"] and "kymo run --device" in tour["devices"]["text"]


def test_keys_are_listed_and_numbers_choose_tabs(tour):
    assert tour["help"] == 20 and tour["first"] == "Overview · train.py · train-400 · kymo"


def test_a_narrow_window_has_a_menu_and_no_sideways_scrolling(tour):
    assert tour["narrow"] == [True, False]


def test_names_are_data(page):
    file, seen = page("hostile", "train", "400")
    assert (seen["hacked"], seen["hackedLater"], seen["errors"], seen["requests"]) == (None, None, [], [])
    assert seen["scripts"] == 3, "two blocks of data and one script"
    text = file.read_text()
    assert "</script><script>window.hacked" not in text and "\\u003c/script>\\u003cscript>window.hacked=1" in text


def test_no_markup_is_ever_parsed():
    for path in (ROOT / "web/src").rglob("*.js"):
        text = path.read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in text, f"{path.name}: {word}"
        assert path.name == "api.js" or not re.search(r"\bfetch\(|EventSource|XMLHttpRequest", text), f"{path.name} speaks to a server"


def test_the_script_and_style_stay_small(page):
    file, _ = page("colours", "train", "400")
    text = file.read_bytes()
    assert len(re.search(rb"<script>(.*)</script></body>", text, re.S)[1]) < 500_000
    assert b"http://" not in text.split(b"<script>")[-1].replace(b"http://www.w3.org", b"")


def test_a_million_zones_fit_and_are_drawn(page):
    file, seen = page("speed", "train", "7150")
    assert file.stat().st_size < 5_000_000
    assert "1,001,631 zones in this file, times rounded to 4 ns" in file.read_text()
    assert seen["timeline"] > 10 and seen["flame"] > 10 and seen["errors"] == []
    print("opened and drawn in", seen["open"]["ms"], "ms")


# --- colours -----------------------------------------------------------------------------------------------------

def linear(value):
    value /= 255
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def rgb(colour):
    return [linear(int(colour[at:at + 2], 16)) for at in (1, 3, 5)]


def contrast(one, other):
    a, b = sorted((0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (rgb(one), rgb(other))), reverse=True)
    return (a + 0.05) / (b + 0.05)


def oklab(r, g, b):
    long, middle, short = ((x * r + y * g + z * b) for x, y, z in (
        (0.4122214708, 0.5363325363, 0.0514459929), (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005)))
    long, middle, short = (math.cbrt(v) if hasattr(math, "cbrt") else max(v, 0) ** (1 / 3) for v in (long, middle, short))
    return (0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
            1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
            0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short)


# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
VISION = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
SOURCES = ["c", "python", "line", "torch", "device", "itt", "nvtx", "op", "xla"]


@pytest.fixture(scope="module")
def themes(page):
    seen = page("colours", "train", "400")[1]
    light = seen[":root"]
    return {"light": light, "dark": {**light, **seen[":root.dark"]}}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_label_and_fill_can_be_read(themes, theme):
    colours = themes[theme]
    for source in SOURCES:
        for shade in "123":
            fill = colours[f"{source}-{shade}"]
            assert contrast(fill, colours[f"{source}-label"]) >= 4.5, (source, shade)
            assert contrast(fill, colours["bg"]) >= 3, (source, shade)
    # A zone of stack samples is pale; its edge is what stands out.
    assert contrast(colours["sample-edge"], colours["bg"]) >= 3
    for shade in "123":
        assert contrast(colours[f"sample-{shade}"], colours["sample-label"]) >= 4.5, shade
        assert contrast(colours[f"sample-{shade}"], colours["sample-edge"]) >= 2.5, shade
    for name in ("text", "muted", "accent", "bad", "warn", "good"):
        for ground in ("bg", "panel"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("vision", VISION)
def test_sources_are_told_apart(themes, theme, vision):
    seen = {}
    for source in SOURCES:
        for shade in "123":
            colour = rgb(themes[theme][f"{source}-{shade}"])
            mixed = [min(1, max(0, sum(w * v for w, v in zip(row, colour)))) for row in VISION[vision]]
            seen[source, shade] = oklab(*mixed)
    for one in seen:
        for other in seen:
            if one[0] < other[0]:
                assert math.dist(seen[one], seen[other]) >= 0.08, (one, other)
