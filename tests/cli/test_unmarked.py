"""Python programs that mark nothing: their own functions are named, from stack samples."""
import json
import re
import sys

from probe_tools import rows

# Garbage collections are zones: they must not hide the samples.
HOT = """
import gc, time
def normalise(text):
    kept = ""
    for letter in text:
        kept += letter.lower()
    return kept
def main():
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        for _ in range(300): normalise("Hello, World! " * 50)
        gc.collect()
main()
"""

SLEEPS = """
import time
def fetch():
    time.sleep(0.3)
for _ in range(9): fetch()
"""


# self, its part of the run, total, and how much of it ran on a CPU
PLACE = r"  [\d.]+ [mµ]?s +[\d.]+  [\d.]+ [mµ]?s +\d+ %  "


def record(kymo, tmp_path, text, **env):
    (tmp_path / "app.py").write_text(text)
    done = kymo("run", "-o", "run", "--", "python3", tmp_path / "app.py",
                env={"KYMO_QUIET": "", "KYMO_SAMPLE_RATE": "0.02", "KYMO_SYSTEM_RATE": "0.1", **env})
    assert done.status == 0, done.err
    return done.err


def test_summary_report_and_verdict_name_the_function_and_its_line(kymo, tmp_path):
    said = record(kymo, tmp_path, HOT)
    assert re.search(rf"^{PLACE}normalise \(app\.py:[56]\)$", said, re.M), said
    assert "KYMO_SCOPE" not in said and said.splitlines()[-1].endswith(" | kymo flame | kymo query 'FROM trace.places'")
    report = kymo("report", "run").out
    assert re.search(rf"Functions of the program's own code\n  self .*\n(?:  .*\n)*?{PLACE}normalise \(app\.py", report)
    verdicts = json.loads(kymo("report", "run", "-f", "json").out)["verdicts"]
    assert any(re.fullmatch(r"The costliest function is normalise \(app\.py:[56]\): .* of the run\.", one["sentence"])
               for one in verdicts), verdicts


def test_stacks_are_exported_from_samples(kymo, tmp_path):
    record(kymo, tmp_path, HOT)
    assert rows(kymo, "run", "SELECT count(*) AS n FROM trace.regions WHERE starts_with(name, 'gc')")[0]["n"] >= 1
    folded = kymo("export", "-f", "folded", "-o", "-", "run").out
    assert re.search(r";normalise \(.*app\.py:[56]\) \d+$", folded, re.M), folded
    assert json.loads(kymo("export", "-f", "speedscope", "-o", "-", "run").out)["profiles"][0]["type"] == "sampled"


def test_a_program_that_waits_is_told_where(kymo, tmp_path):
    said = " ".join(record(kymo, tmp_path, SLEEPS).split())
    assert re.search(r"The program sleeps for (> )?\d+ % of the run\. where fetch app\.py:4 [\d.]+ % try ", said), said


def test_the_place_is_the_innermost_frame_of_the_programs_own_code(kymo, tmp_path):
    record(kymo, tmp_path, "import json, time\n"
           "def decode():\n    until = time.monotonic() + 0.6\n    while time.monotonic() < until:\n"
           "        json.loads('[1, 2, {\"a\": null}]' , parse_int=float)\n"
           "decode()\n")
    found = rows(kymo, "run", "SELECT place, stack[1] AS inner FROM python.samples WHERE contains(stack[1], 'json')")
    assert found and all(row["place"].startswith("decode (") for row in found), found
    own = rows_with(kymo, "SELECT place FROM python.samples WHERE contains(stack[1], 'json/')", KYMO_OWN_CODE="/")
    assert own and all("json/" in row["place"] for row in own), own


def rows_with(kymo, sql, **env):
    done = kymo("query", "-f", "json", "run", sql, env=env)
    assert done.status == 0, done.err
    return json.loads(done.out)


LOOP = """
import time
def grind(count):
    total = 0
    for i in range(count):
        total += i * i
    return total
def main():
    until = time.monotonic() + SECONDS
    while time.monotonic() < until: grind(500)
main()
"""


def run(kymo, tmp_path, text, **env):
    """As a user types it: at the rate that kymo chooses. Not python3, which may be a script that starts another."""
    (tmp_path / "app.py").write_text(text)
    done = kymo("run", "--force", "-o", "run", "--", sys.executable, tmp_path / "app.py", env={"KYMO_QUIET": "", **env})
    assert done.status == 0, done.err
    return done.err


def test_a_loop_without_collections_is_named(kymo, tmp_path):
    said = run(kymo, tmp_path, LOOP.replace("SECONDS", "1.5"))
    assert re.search(rf"^{PLACE}grind \(app\.py:[56]\)$", said, re.M), said
    assert "#include" not in said and "KYMO_SCOPE" not in said, said


def test_a_program_of_150_ms_is_named(kymo, tmp_path):
    for _ in range(3):  # a busy machine gives it few samples
        said = run(kymo, tmp_path, LOOP.replace("SECONDS", "0.15"))
        if re.search(r"grind \(app\.py:[56]\)", said):
            return
    raise AssertionError(said)


def test_a_short_sleep_gets_a_line_without_advice_for_c(kymo, tmp_path):
    said = run(kymo, tmp_path, "import time\ntime.sleep(0.3)\n")
    assert re.search(r"<module> \(app\.py:2\)", said), said
    assert "#include" not in said and "KYMO_SCOPE" not in said, said


def test_a_python_without_samples_is_not_told_about_c(kymo, tmp_path):
    said = run(kymo, tmp_path, "pass\n", KYMO_SAMPLE_RATE="0")
    assert "Too short to judge" in said and "KYMO_SCOPE" not in said, said


def test_advice_on_marks_is_for_the_language_of_the_program(kymo, tmp_path):
    said = run(kymo, tmp_path, "import time\ntime.sleep(0.2)\n", KYMO_SAMPLE_RATE="0")
    assert re.search("records? every call", said) and "KYMO_SCOPE" not in said, said
    done = kymo("run", "-o", "sleep", "--", "sleep", "0.2", env={"KYMO_QUIET": ""})
    assert "KYMO_SCOPE" in done.err and "--python" not in done.err, done.err


def test_shares_are_of_time_although_samples_have_different_periods(kymo, tmp_path):
    """The first second has more samples than the second one."""
    text = LOOP.replace("main()\n", "").replace("def main", "def later") + \
        "def early():\n    until = time.monotonic() + 1\n    while time.monotonic() < until: sum(range(500))\nearly()\nlater()\n"
    run(kymo, tmp_path, text.replace("SECONDS", "2"))
    weighed, = rows(kymo, "run", "SELECT sum(weight_ns) FILTER (array_to_string(stack, ' ') LIKE '%early %') / sum(weight_ns) AS w, "
                                 "count(*) FILTER (array_to_string(stack, ' ') LIKE '%early %') / count(*) AS n FROM python.samples")
    assert weighed["w"] < weighed["n"] and 0.2 < weighed["w"] < 0.5, weighed
    folded = rows(kymo, "run", "SELECT stack, samples, time_ns FROM python.folded")
    assert all(row["time_ns"] > 0 for row in folded), folded
    whole = sum(row["time_ns"] for row in folded)
    exported = kymo("export", "-f", "folded", "-o", "-", "run").out
    assert sum(int(line.rsplit(" ", 1)[1]) for line in exported.splitlines()) >= 0.9 * whole
    assert json.loads(kymo("export", "-f", "speedscope", "-o", "-", "run").out)["profiles"][0]["unit"] == "nanoseconds"
