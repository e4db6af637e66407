"""What a report says first: how the program ended, that it was too short, what was lost of the evidence, and where the
numbers are from."""
import json
import re
import sys

import pytest


def report(kymo, path="rec"):
    done = kymo("report", path, "-f", "json")
    assert done.status == 0, done.err
    return json.loads(done.out)


def run(kymo, code, *words, status=0, env=None):
    program = kymo.cwd / "program.py"
    program.write_text(code)
    done = kymo("run", "-o", "rec", *words, "--", sys.executable, program, env={"KYMO_QUIET": "0", **(env or {})})
    assert done.status == status, done.err
    return done


def test_a_crash_comes_first_and_what_took_the_time_second(kymo, python):
    code = ("import kymo, os, time\nwith kymo.region('outer'):\n    time.sleep(0.3)\n    with kymo.region('inner'):\n"
            "        os.kill(os.getpid(), 11)\n")
    program = kymo.cwd / "program.py"
    program.write_text(code)
    done = kymo("run", "-o", "rec", "--", python, program, env={"KYMO_QUIET": "0"})
    assert done.status == -11
    assert re.search(r"^  The program was killed by SIGSEGV: it had run for \d", done.err, re.M)
    assert "It ended inside outer for" in " ".join(done.err.split())
    first = report(kymo)["verdicts"][0]
    assert first["name"] == "ended" and first["evidence"].endswith(" was in outer > inner")
    assert first["sql"] == "FROM trace.open_zones" and "faulthandler" in first["try"]
    out = kymo("report", "rec").out
    assert out.splitlines()[2].startswith("  The program was killed by SIGSEGV")
    # What was open when it died counts for its thread: at least the sleep, most of the run.
    busy = out.split("\nThreads\n")[1].splitlines()[1].split()
    assert float(busy[0]) >= 300 and busy[1] == "ms" or busy[1] == "s"


def test_an_exception_comes_first_and_no_word_on_imports(kymo):
    done = run(kymo, "import json\nraise ValueError('no')\n", "--python", status=1)
    text = " ".join(done.err.split())
    assert "The program failed: it ended with exit status 1 after" in text and "mport" not in text.split("ValueError: no")[1]
    verdicts = report(kymo)["verdicts"]
    assert verdicts[0]["name"] == "ended" and "import" not in [one["name"] for one in verdicts]


def test_a_program_that_was_asked_to_end_has_not_failed(kymo):
    run(kymo, "import os, time\ntime.sleep(0.1)\nos.kill(os.getpid(), 15)\n", status=-15)
    assert "ended" not in [one["name"] for one in report(kymo)["verdicts"]]


def test_a_tiny_script_is_too_short_to_judge(kymo):
    done = run(kymo, "import argparse, textwrap\nprint(1)\n", "--python")
    if "ran no Python" in done.err:
        pytest.skip(f"kymo has no extension for {sys.executable}")
    data = report(kymo)
    if data["run"]["duration_ns"] > 1e9:
        pytest.skip("the machine is so busy that nothing is short")
    (first,) = data["verdicts"]
    assert re.fullmatch(r"Too short to judge: it ran for .*s\.", first["sentence"]) and "regions" not in first["evidence"]


STEPS = """
import kymo, time
for _ in range(5000):
    kymo.step()
    with kymo.phase("data"):
        time.sleep(0.0001)
kymo.step_end()
"""


def test_what_was_lost_of_the_evidence_is_said(kymo, python):
    (kymo.cwd / "steps.py").write_text(STEPS)
    done = kymo("run", "-o", "rec", "--keep", "flight", "--", python, "steps.py", env={"KYMO_RING_ROWS": "1000"})
    assert done.status == 0, done.err
    sql = "SELECT sum(emitted)::INT AS emitted, sum(kept)::INT AS kept FROM kymo.streams WHERE table_name = 'trace.steps'"
    rows = json.loads(kymo("query", "-f", "json", "rec", sql).out)[0]
    assert rows["emitted"] == 5000 and rows["kept"] < 3000
    first = report(kymo)["verdicts"][0]
    assert first["name"] == "data"
    assert first["sentence"].endswith(f" It rests on {rows['kept']:,} of 5,000 rows of trace.steps: the others were overwritten.")


def test_the_numbers_name_their_query_and_it_runs(shared):
    out = shared("report", shared.path).out
    (query,) = re.findall(r'^  numbers   kymo query "(.*?)"$', re.sub(r"\n {12}", " ", out), re.M)
    assert query == "SELECT step, data_ns, duration_ns FROM trace.steps ORDER BY data_ns DESC"
    done = shared("query", shared.path, query)
    assert done.status == 0 and "40 rows" in done.err + done.out
