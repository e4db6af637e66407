"""What kymo run says at the end, as views/report/summary.c prints it."""
import re
import sys

import pytest

from conftest import PROGS
from test_query import plain_text


def summary(kymo, word, env=None):
    result = kymo("run", "--", PROGS / "cli_fixture", word, env={"KYMO_QUIET": "", **(env or {})})
    assert result.status == 0 and result.out == ""
    return result.err.splitlines()


def test_a_summary_is_short_and_plain(kymo):
    lines = summary(kymo, "plain")
    assert len(lines) <= 24 and all(len(line) <= 80 for line in lines[1:])
    assert plain_text("\n".join(lines)) == "\n".join(lines)
    assert re.match(r"  [A-Z].*: ", lines[1])
    text = "\n".join(lines)
    assert re.search(r"^  40 steps   median [\d.]+ .s   p99 [\d.]+ .?s   [\d.]+ steps/s$", text, re.M)
    assert re.search(r"^  step time  [▁▂▃▄▅▆▇█]{40} +[\d.]+ .s to [\d.]+ .?s$", text, re.M)
    assert re.search(r"^  [\d.]+ ms +[\d.]+  data\.next +c +40 ", text, re.M)
    assert re.search(r"^  recorded: 120 zones, 40 steps, 3 marks, 4 counter values, 3 in app\.requests(, |$)", text, re.M)
    assert re.search(r"^  losses: none of \d+ rows", text, re.M)
    assert re.fullmatch(r"  next: kymo report --open( \| kymo flame)? \| kymo query 'FROM trace\.regions'", lines[-1])


def test_a_program_without_zones_is_told_how_to_mark_them(kymo):
    lines = summary(kymo, "empty")
    assert any("No zones recorded" in line or "Too short to judge" in line for line in lines)
    assert len(lines) <= 8


def test_a_program_that_dies_in_its_first_zone_has_recorded_one(kymo):
    result = kymo("run", "--", PROGS / "cli_fixture", "killed", env={"KYMO_QUIET": ""})
    assert result.status == -9 and "No zones recorded" not in result.err and "It ended inside outer" in " ".join(result.err.split())


def test_without_duckdb_the_summary_comes_from_the_store(kymo, tmp_path):
    lines = summary(kymo, "plain", {"KYMO_DUCKDB": str(tmp_path / "nothing.so")})
    text = " ".join(line.strip() for line in lines)
    assert "DuckDB" in text and "nothing.so" in text
    # There is room for one region, and which of the two took longer the machine decides.
    assert re.search(r"(data\.next|forward) +c +40 ", text) and "40 steps" in text and "losses: none of" in text


def test_a_small_recording_is_summed_up_without_duckdb(kymo, tmp_path):
    result = kymo("run", "--", PROGS / "run_rows", "20", env={"KYMO_QUIET": "", "KYMO_DUCKDB": str(tmp_path / "nothing.so")})
    assert result.status == 0 and "DuckDB" not in result.err
    assert "  losses: none of" in result.err


COLLECTS = """
import gc, multiprocessing, os, sys

class Last:
    def __del__(self):
        os._exit(0)

def work(how):
    kept = [[i] for i in range(200000)]
    for _ in range(5):
        gc.collect()
    if how == "inside":
        last = Last()
        last.itself = last
        del last
        gc.collect()

if __name__ == "__main__":
    worker = multiprocessing.get_context(sys.argv[1]).Process(target=work, args=sys.argv[2:])
    worker.start()
    worker.join()
    sys.exit(worker.exitcode)
"""


@pytest.mark.parametrize("start", ["spawn", "fork"])
@pytest.mark.parametrize("how", ["returns", "inside"])
def test_a_worker_that_ended_by_itself_did_not_end_inside_a_collection(kymo, start, how):
    (kymo.cwd / "workers.py").write_text(COLLECTS)
    done = kymo("run", "-o", "rec", "--", sys.executable, "workers.py", start, how, env={"KYMO_QUIET": "0"})
    assert done.status == 0 and "recorded" in done.err and "ended inside" not in done.err, done.err


BUSY = """
import json, threading, time
def normalise(text):
    return "".join(sorted(text.lower()))
def parse(text):
    return json.loads(json.dumps([text] * 50))
def wait():
    time.sleep(0.05)
def deep_name_that_is_much_longer_than_the_column_of_a_table_is_and_goes_on_and_on_to_the_end(n):
    return sum(i * i for i in range(n))
def main():
    until = time.monotonic() + 1.6
    while time.monotonic() < until:
        for _ in range(400):
            normalise("Hello, World! " * 50)
            parse("text" * 20)
        deep_name_that_is_much_longer_than_the_column_of_a_table_is_and_goes_on_and_on_to_the_end(200000)
        wait()
main()
"""


def test_the_first_screen_of_a_python_program_names_the_places_of_its_own_code(kymo):
    (kymo.cwd / "busy.py").write_text(BUSY)
    done = kymo("run", "-o", "rec", "--", sys.executable, "busy.py", env={"KYMO_QUIET": ""})
    lines = done.err.splitlines()
    assert done.status == 0 and len(lines) <= 24 and all(len(line) <= 80 for line in lines[1:]), done.err
    # A finding: a sentence with a number, its place, and what to try.
    where = [i for i, line in enumerate(lines) if line.startswith("  where     ")]
    assert where and re.fullmatch(r"  where     \S+  busy\.py:\d+  [\d.]+ %", lines[where[0]]), done.err
    assert re.match(r"  [A-Z].*\d", lines[1]) and any(line.startswith("  try       ") for line in lines), done.err
    header = r"  self    % run  total   running  function, by [\d,]+ stack samples"
    at = next(i for i, line in enumerate(lines) if re.fullmatch(header, line))
    places = [line for line in lines[at + 1:at + 6] if re.match(r"  [\d.]+ [mµ]?s +[\d.]+  [\d.]+ [mµ]?s +\d+ %  \S", line)]
    names = " ".join(places)
    assert len(places) >= 4, done.err
    assert "normalise (busy.py:4)" in names and "parse (busy.py:6)" in names and "deep_name" in names
    # A sleeping thread counts as running only in samples that see it just before or after its sleep.
    assert re.search(r" [1-4]?[0-9] %  wait \(busy\.py:8\)", names), names
    assert lines[-1] == "  next: kymo report --open | kymo flame | kymo query 'FROM trace.places'"
    report = kymo("report", "rec").out
    for line in lines[1:where[0] + 1]:
        assert line in report.splitlines(), line


def test_a_failed_program_is_headed_by_its_failure_and_the_next_command_fits(kymo):
    (kymo.cwd / "fails.py").write_text("import time\ndef load():\n    time.sleep(0.3)\n    raise ValueError('no such shard')\nload()\n")
    done = kymo("run", "-o", "rec", "--", sys.executable, "fails.py", env={"KYMO_QUIET": ""})
    said = done.err[done.err.index("kymo: "):].splitlines()[1:]
    assert done.status == 1 and said[-1].startswith("  next: kymo backtrace | kymo report --open"), done.err
    assert "The program failed" in done.err and all(len(line) <= 80 for line in said), done.err
