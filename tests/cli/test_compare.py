"""kymo compare: what it says, what it refuses, and that it does not cry wolf."""
import json
import math
import random
import re
import subprocess

import pytest

from conftest import PROGS, Kymo
from made import Made
from test_query import on_a_terminal, plain_text

MS = 1_000_000


def times(mean, spread, count=60, seed=1):
    """Uniform about a mean, in ns."""
    rng = random.Random(seed)
    return [mean * (1 + spread * (2 * rng.random() - 1)) for _ in range(count)]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Makes recordings of a loop: lab("a", alpha=1, beta=2, seed=3) is a path; means in ms."""
    kymo = Kymo(tmp_path_factory.mktemp("lab"))
    template = kymo.home / "template.kymo"
    assert kymo("pack", kymo.record("plain"), template).status == 0

    def make(name, *, steps=60, spread=0.02, seed=1, edit=None, **regions):
        path = kymo.home / f"{name}.kymo"
        path.unlink(missing_ok=True)
        with Made(template, path) as rows:
            if regions:
                rows.loop(*((region, times(mean * MS, spread, steps, f"{seed}{region}"))
                            for region, mean in regions.items()))
            if edit:
                edit(rows)
        return path
    make.kymo = kymo
    make.a = make("a", alpha=6, beta=3, gamma=1, seed=1)
    make.a2 = make("a2", alpha=6, beta=3, gamma=1, seed=2)
    make.b = make("b", alpha=6.6, beta=3, gamma=1, seed=3)
    return make


def rows_of(done):
    result = json.loads(done.out)
    return result, {row["name"]: row for row in result["rows"]}


def test_a_ratio_of_thousands_does_not_run_into_the_columns_beside_it(lab):
    done = lab.kymo("compare", lab("tiny", alpha=6, beta=0.001), lab("huge", alpha=6, beta=3, seed=2))
    (line,) = [line for line in done.out.splitlines() if line.startswith("  beta")]
    assert re.fullmatch(r"  beta +\S+ [µu]s +\S+ ms +\+\S+ ms +\d{4}  \d{4}\S\d{4} +slower", line), line


def test_a_slower_region_is_named_with_its_ratio_and_what_it_costs(lab):
    done = lab.kymo("compare", lab.a, lab.b)
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "A a.kymo  60 steps" and lines[1] == "B b.kymo  60 steps"
    assert lines[3].startswith("  B is slower: a step takes 1.0")
    assert lines[5].startswith("  throughput ")
    assert lines[6].split() == ["region,", "self", "A", "B", "per", "step", "B/A", "95", "%", "interval"]
    words = lines[7].split()
    assert words[0] == "alpha" and words[-1] == "slower" and words[5].startswith("+") and words[7].startswith("1.")
    assert lines[8] == "  2 more not significant (--all). 4 tests, Holm-corrected, weighted by time."
    assert not any(line.startswith(("  beta", "  gamma")) for line in lines)


def test_the_same_program_twice_shows_no_difference_and_says_what_could_have_been_seen(lab):
    done = lab.kymo("compare", lab.a, lab.a2)
    assert done.status == 0
    text = " ".join(done.out.split())
    assert "No significant difference: in B a step takes " in text
    assert " % would have been detected." in text
    assert "3 not significant (--all)" in text
    assert "kymo compare A1 A2 A3 -- B1 B2 B3" in text


def test_json_has_rows_a_flame_graph_memory_and_throughput(lab):
    result, rows = rows_of(lab.kymo("compare", lab.a, lab.b, "-f", "json"))
    assert result["comparable"] is True and result["why"] is None and result["unit"] == "step"
    assert [r["name"] for r in result["rows"]][:2] == ["step", "alpha"]
    alpha = rows["alpha"]
    assert alpha["kind"] == "region" and alpha["significant"] and 1.08 < alpha["lo"] < alpha["ratio"] < alpha["hi"] < 1.12
    assert alpha["p"] <= alpha["p_corrected"] < 0.05 and 0 < alpha["could_see"] < 0.1
    assert not rows["beta"]["significant"] and not rows["gamma"]["significant"]
    assert result["memory"] == {"a": None, "b": None, "ratio": None}
    assert 0.92 < result["throughput"]["ratio"] < 0.96
    flame = dict(zip(result["flame"]["name"], zip(result["flame"]["parent"], result["flame"]["a_self"],
                                                  result["flame"]["b_total"])))
    assert set(flame) == {"alpha", "beta", "gamma"} and flame["alpha"][0] == -1
    assert abs(flame["alpha"][1] / MS - 6) < 0.1 and abs(flame["alpha"][2] / MS - 6.6) < 0.1


def test_self_time_and_total_time(lab):
    def nest(slow):
        def edit(rows):
            at = 0
            for i, inner in enumerate(times(slow * MS, 0.02, 40, f"{slow}")):
                inner = int(inner)
                rows.zone("outer", at, inner + MS, step=i)
                rows.zone("again", at, inner, depth=1, step=i)
                rows.zone("again", at, inner, depth=2, step=i)
                rows.step(at, inner + MS)
                at += inner + MS
        return edit
    a, b = lab("nest_a", edit=nest(2)), lab("nest_b", edit=nest(3))
    _, rows = rows_of(lab.kymo("compare", a, b, "-f", "json"))
    assert rows["outer"]["a"] == rows["outer"]["b"] == MS and not rows["outer"]["significant"]
    _, rows = rows_of(lab.kymo("compare", a, b, "-f", "json", "--total"))
    assert rows["outer"]["significant"] and abs(rows["outer"]["a"] - 3 * MS) < 0.05 * MS
    assert abs(rows["again"]["a"] - 2 * MS) < 0.05 * MS, "a region inside of itself counts once"


def test_a_zone_across_steps_is_shared_by_them(lab):
    def edit(rows):
        rows.zone("epoch", 0, 40 * MS)
        for i in range(40):
            rows.step(i * MS, MS)
    path = lab("epoch", edit=edit)
    _, rows = rows_of(lab.kymo("compare", path, path, "-f", "json"))
    assert rows["epoch"]["a"] == MS and rows["epoch"]["ratio"] == 1


def test_a_region_that_is_new_is_found(lab):
    path = lab("new", alpha=6, beta=3, gamma=1, extra=0.5, seed=4)
    result, rows = rows_of(lab.kymo("compare", lab.a, path, "-f", "json"))
    assert rows["extra"]["significant"] and rows["extra"]["ratio"] is None and rows["extra"]["a"] == 0
    assert any(line.split()[:1] == ["extra"] and " new " in line
               for line in lab.kymo("compare", lab.a, path).out.splitlines())


def test_modules_are_compared_by_call(lab):
    def model(factor, seed):
        def edit(rows):
            rows.module("layers.0.attn", "forward", times(factor * MS, 0.02, 60, seed))
            rows.module("layers.0.mlp", "forward", times(2 * MS, 0.02, 60, f"m{seed}"))
        return edit
    a = lab("mod_a", alpha=5, edit=model(1, "x"))
    b = lab("mod_b", alpha=5, seed=5, edit=model(1.2, "y"))
    _, rows = rows_of(lab.kymo("compare", a, b, "-f", "json"))
    assert rows["layers.0.attn forward"]["kind"] == "module" and rows["layers.0.attn forward"]["significant"]
    assert not rows["layers.0.mlp forward"]["significant"]


def test_warm_up_is_left_out_and_told(lab):
    def edit(rows):
        at = 0
        for i, took in enumerate([90 * MS, 40 * MS, *map(int, times(10 * MS, 0.02, 40))]):
            rows.zone("alpha", at, took, step=i)
            rows.step(at, took)
            at += took
    path = lab("warm", edit=edit)
    done = lab.kymo("compare", path, path)
    assert done.out.splitlines()[0] == "A warm.kymo  40 steps after 2 warm-up steps"


def test_a_slowdown_that_nobody_would_doubt_is_not_hidden_by_a_test(lab):
    """Slow waves: successive values depend on each other, and 24 of them confirm nothing."""
    def wave(factor):
        def edit(rows):
            swing = [1 + 0.12 * math.sin(2 * math.pi * i / 24) for i in range(24)]
            rows.loop(("alpha", [factor * MS * f for f in swing]), ("beta", [0.2 * MS * (2 - f) for f in swing]))
        return edit
    done = lab.kymo("compare", lab("wave1", edit=wave(1)), lab("wave2", edit=wave(2.2)))
    text = " ".join(done.out.split())
    assert "B is slower: a step takes 2.0" in text and "hardly overlap" in text and "No conclusion" not in text
    assert text.index("throughput") < text.index("region, self")
    assert re.search(r"^  alpha .* slower$", done.out, re.M)
    same = lab.kymo("compare", lab("wave1", edit=wave(1)), lab("wave3", edit=wave(1.15))).out
    assert "hardly overlap" not in same


def test_workers_do_not_change_how_often_a_process_is_sampled(lab):
    def samples(workers):
        def edit(rows):
            rows.loop(("alpha", times(6 * MS, 0.02, 60)))
            for worker in range(workers):
                rows.db.executemany("INSERT INTO python.samples (ts_ns, pid, tid, stack, host) VALUES (?, ?, ?, ['f (a.py:1)'], 'box')",
                                    [(i * 100 * MS + worker * 7 * MS, 500 + worker, 500 + worker) for i in range(40)])
        return edit
    done = lab.kymo("compare", lab("one", edit=samples(1)), lab("six", edit=samples(6)))
    assert done.status == 0 and "sampled every" not in done.out + done.err, done.err


def test_a_few_zones_more_are_no_other_way_of_recording(lab):
    done = lab.kymo("compare", lab("under", alpha=6, steps=990), lab("over", alpha=6, steps=1010, seed=2))
    assert done.status == 0 and "has many zones from" not in done.out + done.err, done.err


def test_many_runs_make_the_run_the_unit(lab):
    """Runs differ by themselves by 10 %: within one run all is quiet, and only runs can tell."""
    a = [lab(f"ra{i}", alpha=10 * f, seed=i, spread=0.001) for i, f in enumerate((1, 1.1, 0.9))]
    b = [lab(f"rb{i}", alpha=10 * f, seed=9 + i, spread=0.001) for i, f in enumerate((1.05, 0.93, 1.1))]
    single = json.loads(lab.kymo("compare", a[0], b[0], "-f", "json").out)
    many = json.loads(lab.kymo("compare", *a, "--", *b, "-f", "json").out)
    assert single["rows"][0]["significant"] and single["unit"] == "step"
    assert not many["rows"][0]["significant"] and many["unit"] == "run"
    options = [x for p in a for x in ("--a", p)] + [x for p in b for x in ("--b", p)]
    assert json.loads(lab.kymo("compare", *options, "-f", "json").out)["rows"] == many["rows"]


def test_runs_without_steps_are_compared_as_wholes(lab):
    def took(ms):
        def edit(rows):
            rows.zone("main", 0, int(ms * MS))
            rows.db.execute("UPDATE kymo.runs SET duration_ns = ?", [int(ms * MS)])
        return edit
    runs = [lab(f"w{i}", edit=took(ms)) for i, ms in enumerate((10, 10.1, 9.9, 12, 12.1, 11.9))]
    done = lab.kymo("compare", *runs[:3], "--", *runs[3:])
    assert done.status == 0 and "B is slower: a run takes 1.200 times as long" in done.out


# --- CI -----------------------------------------------------------------------------------------------------------

def test_fail_above_gives_status_1_and_the_reason(lab):
    done = lab.kymo("compare", lab.a, lab.b, "--fail-above", "4%")
    assert done.status == 1 and done.err == ""
    assert done.out.splitlines()[-1].startswith("  --fail-above 4%: failed (step ")
    assert done.out.endswith(", exit status 1\n")
    for bar in ("10%", "0.1", "10 %"):
        done = lab.kymo("compare", lab.a, lab.b, "--fail-above", bar)
        assert done.status == 0 and done.out.endswith("--fail-above 10%: passed\n")
    assert lab.kymo("compare", lab.b, lab.a, "--fail-above", "0%").status == 0, "faster is no failure"
    assert json.loads(lab.kymo("compare", lab.a, lab.b, "--fail-above", "4%", "-f", "json").out)["failed"] is True


# --- refusals -----------------------------------------------------------------------------------------------------

def sql(text):
    return lambda rows: rows.db.execute(text)


REFUSED = [
    ("program", sql("UPDATE kymo.runs SET program = 'other'"),
     "A is a recording of cli_fixture, B ({b}) of other: compare runs of one program"),
    ("loop", lambda rows: setattr(rows, "steps", []) or rows.db.execute(
        "INSERT INTO trace.steps SELECT i, 'eval', i * 1000000, 1000000, NULL, NULL, NULL, NULL, 1, NULL, 'box' FROM range(60) t(i)"),
     "A has steps of step, B ({b}) of eval: record both in the same way"),
    ("sampled", lambda rows: rows.sample(["f"], 20, every=MS),
     "A was not sampled, B was sampled every 1.00 ms. "
     "Record both with kymo run and the same KYMO_SAMPLE_RATE (seconds; 0: none)"),
    ("settings", sql("INSERT INTO kymo.config VALUES (0, 'sample_period_ns', NULL, '1000000', 'run', 'box')"),
     "A was recorded with default settings, B with sample_period_ns=1000000. "
     "Record both with kymo run and the same KYMO_SAMPLE_RATE (seconds; 0: none)"),
    ("sources", sql("INSERT INTO trace.regions (source, name, count) VALUES ('python', 'f', 5000)"),
     "A has many zones from no source, B ({b}) from python, and recording takes time. "
     "Record both with the same options of kymo run (--python, --torch, --device)"),
    ("density", sql("UPDATE kymo.streams SET emitted = 600000 WHERE table_name = 'trace.zones'"),
     "A has 2 zones per step, B ({b}) has 10,000, and recording takes time. "
     "Record both with the same options of kymo run (--python, --torch, --device)"),
    ("losses", sql("UPDATE kymo.streams SET emitted = 1000, overwritten = 120 WHERE table_name = 'trace.zones'"),
     "B ({b}) lost 12 % of its zones, so the times of regions are incomplete; record with kymo run, "
     "which keeps all zones"),
    ("few", lambda rows: rows.steps.__delitem__(slice(8, None)),
     "B ({b}) has 8 steps after 0 warm-up steps; at least 10 are needed: record longer, or compare several runs of each"),
    ("none", lambda rows: rows.steps.clear() or rows.db.execute("UPDATE kymo.runs SET program = 'cli_fixture'"), None),
]


@pytest.mark.parametrize("name,edit,why", REFUSED, ids=[name for name, *_ in REFUSED])
def test_what_cannot_be_compared_is_refused_with_the_reason(lab, name, edit, why):
    b = lab(f"refused_{name}", alpha=6, beta=3, gamma=1, edit=edit)
    done = lab.kymo("compare", lab.a, b)
    assert (done.status, done.out) == (1, "")
    if why:
        assert done.err == f"kymo compare: cannot compare: {why.format(b=b)}; use --anyway to override\n"
    else:
        assert done.err.startswith("kymo compare: cannot compare: ")
    result = lab.kymo("compare", lab.a, b, "-f", "json")
    assert result.status == 1 and json.loads(result.out)["comparable"] is False
    anyway = lab.kymo("compare", lab.a, b, "--anyway")
    assert anyway.status == 0 and "  --anyway: " in anyway.out


def test_other_sampling_is_refused_and_about_the_same_is_not(lab):
    slow, fast, near = (lab(f"sampled{every}", alpha=6, edit=lambda rows: rows.sample(["f"], 20, every=every * MS))
                        for every in (10, 1, 12))
    assert lab.kymo("compare", slow, fast).err == (
        "kymo compare: cannot compare: A was sampled every 10.0 ms, B was sampled every 1.00 ms. "
        "Record both with kymo run and the same KYMO_SAMPLE_RATE (seconds; 0: none); use --anyway to override\n")
    assert lab.kymo("compare", slow, near).status == 0
    few = lab("sampled_few", alpha=6, edit=lambda rows: rows.sample(["f"], 9, every=10 * MS))
    assert lab.kymo("compare", slow, few).status == 0, "a shorter run has fewer samples"


WRONG = [
    ([], "no recordings given; usage: kymo compare A B (kymo ls lists recordings)"),
    (["a"], "expected two recordings A and B, or several of each separated by --, got 1"),
    (["a", "b", "c"], "expected two recordings A and B, or several of each separated by --, got 3"),
    (["a", "--"], "no recordings given; usage: kymo compare A B (kymo ls lists recordings)"),
    (["a", "b", "--fail-above", "much"], "--fail-above needs a share such as 5%, not much"),
    (["a", "b", "--fail-above", "5"], "--fail-above 5 is ambiguous; write 5% or 0.05"),
    (["a", "b", "-f", "xml"], "unknown format xml; use text, html or json"),
    (["a", "b", "-o", "it"], "cannot infer the format of it from its name; use -f"),
]


@pytest.mark.parametrize("arguments,sentence", WRONG, ids=[" ".join(a) or "nothing" for a, _ in WRONG])
def test_wrong_use(kymo, arguments, sentence):
    done = kymo("compare", *arguments)
    assert (done.status, done.out, done.err) == (2, "", f"kymo compare: {sentence}\n")


# --- looks --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("columns", [80, 132])
def test_the_terminal_is_not_overrun(lab, hostile, columns):
    for a, b in ((lab.a, lab.b), (hostile.path, hostile.path)):
        status, out = on_a_terminal(lab.kymo, "compare", str(a), str(b), "--all", "--anyway", columns=columns)
        assert status == 0
        for line in plain_text(out).splitlines():
            assert len(line) <= columns, line
    assert "\x1b[31mslower" in on_a_terminal(lab.kymo, "compare", str(lab.a), str(lab.b))[1]


def test_without_utf8_there_is_none(lab):
    out = lab.kymo("compare", lab.a, lab.b, "--all", env={"LC_ALL": "C"}).out
    assert out.isascii()


# --- honesty ------------------------------------------------------------------------------------------------------

def test_real_recordings_of_the_same_program_raise_few_alarms(kymo):
    """20 comparisons of recordings made here and now; tests/unit/views/views_compare.c makes 200 of each kind of noise."""
    def record():
        before = set((kymo.home / "live").iterdir())
        subprocess.run([PROGS / "compare_loop", "40", "0"], env={**kymo.env, "KYMO": "on"}, check=True)
        return (set((kymo.home / "live").iterdir()) - before).pop()
    alarms = 0
    for _ in range(20):
        result = json.loads(kymo("compare", record(), record(), "-f", "json").out)
        alarms += any(row["significant"] for row in result["rows"])
    assert alarms <= 5  # more than 5 of 20 at a rate of 5 % is one in 3,000
