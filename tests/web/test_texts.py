"""Texts of the pages, by the functions that write them, without a browser."""
import json
import re
import subprocess

import pytest
from conftest import ROOT, Page


@pytest.fixture(scope="module")
def call(browser, tmp_path_factory):
    """call(file, script): what `script` gives, with the exports of web/src/FILE as `of`."""
    folder = tmp_path_factory.mktemp("texts")

    def run(file, script):
        bundle = folder / f"{file}.mjs"
        if not bundle.exists():
            subprocess.run([ROOT / "deps/web/esbuild", ROOT / "web/src" / file, "--bundle", "--format=esm", f"--outfile={bundle}",
                            "--log-level=error"], check=True)
        words = f"import * as of from '{bundle}'; console.log(JSON.stringify({script}))"
        return json.loads(subprocess.run([browser[0], "--input-type=module", "-e", words], check=True, capture_output=True,
                                         text=True).stdout)
    return run


@pytest.mark.parametrize("sentence, figures", [
    ("load (train.py:31) takes 17.1 s, 86 % of the run", ["17.1 s", "86 %"]),
    ("it reads /data/2024/x 1,900 times", ["1,900"]),
    ("/runs/lr=5, /runs/a@2 and /runs/1,2 took 3 min", ["3 min"]),
    ("torch 2.5.1 and python3.11 need 1.5 GB", ["1.5 GB"]),
    ("12 of 1,234,567 calls, 0.5 ms each.", ["12", "1,234,567", "0.5 ms"]),
    ("Ranks 0, 3-5 and 6 are late, rank 12 by 4.72 ms of 628 ms", ["4.72 ms", "628 ms"]),
    ("layer-3.weight, blocks.0.mlp and 2024-05-01", []),
])
def test_figures_are_no_digits_of_paths_names_or_versions(call, sentence, figures):
    assert call("format.js", f"of.cutAtFigures({json.dumps(sentence)})")[1::2] == figures


def test_the_length_of_a_run_is_rounded_as_its_figures_are(call):
    # format_clock() of the C code: rounded to a second, from 59.95 s on.
    times = [59.94e9, 59.96e9, 156.4e9, 156.6e9, 3599.6e9, 7322e9]
    assert call("format.js", f"{times}.map((ns) => of.clock(ns))") == ["59.9 s", "1:00", "2:36", "2:37", "1:00:00", "2:02:02"]


def test_a_small_share_is_not_zero(call):
    shares = [0, 0.000001, 0.0001, 0.5]
    assert call("format.js", f"{shares}.map((share) => of.percent(share))") == ["0 %", "< 0.01 %", "0.01 %", "50 %"]


def test_no_label_is_wider_than_its_box(call):
    script = """(() => {
        const ink = { measureText: (text) => ({ width: [...text].reduce((sum, c) => sum + ("iljft.…".includes(c) ? 3 : 7), 0) }) };
        const names = ["a", "illlll.jjjj", "WWWWWWWWWWWW", "Thread._bootstrap_inner (/usr/lib/python3.11/threading.py:1045)"];
        const spill = (name, room) => ink.measureText(of.shortened(ink, name, room)).width - room;
        return names.flatMap((name) => Array.from({ length: 200 }, (_, room) => spill(name, room)));
    })()"""
    assert max(call("flame.js", script)) <= 0


def test_a_thin_part_of_a_step_is_as_wide_as_its_share(browser, pages):
    file = pages.folder / "thin.html"
    done = pages.kymo("report", pages.recording("train", "400"), file)
    assert done.returncode == 0, done.stderr
    # Five parts as in no program that is easily made: two of them are thinner than the space around a text.
    ns = {"data": 2e6, "forward": 400e6, "backward": 590e6, "optimizer": 5e6, "other": 3e6}
    parts = json.dumps([{"name": name, "ns": value} for name, value in ns.items()])
    text, changed = re.subn(r'"parts":\[[^]]*\]', f'"parts":{parts}', file.read_text(encoding="utf-8"))
    assert changed == 1
    file.write_text(text, encoding="utf-8")
    page = Page(browser)
    try:
        page.open(f"file://{file}")
        page.see(".parts")
        wide = page.js("[...document.querySelectorAll('.part')].map((one) => one.getBoundingClientRect().width)")
    finally:
        page.close()
    assert len(wide) == 5
    for px, share in zip(wide, (value / sum(ns.values()) for value in ns.values())):
        assert px == pytest.approx(share * sum(wide), abs=0.6)
