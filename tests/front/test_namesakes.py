"""Functions that are called alike in different files are different functions: in SQL, in reports, in comparisons."""
import json
import subprocess

import pytest
from conftest import KYMO, SECONDS

PROGRAM = """
    import kymo, first, second.third
    for _ in range(20):
        kymo.step()
        first.parse()
        second.third.parse()
        second.load()
        with kymo.region("chosen"):
            first.chosen()
    kymo.step_end()
"""


@pytest.fixture
def two(front):
    """Two runs of it."""
    front.write("import kymo\ndef parse(): return sum(range(20000))\ndef chosen():\n    with kymo.region('inner'): pass\n", "first.py")
    front.write("import kymo\ndef load():\n    with kymo.region('inner'): pass\n", "second/__init__.py")
    front.write("def parse(): pass\n", "second/third.py")
    return front(code=PROGRAM), front(code=PROGRAM)


def said(*words, status=0):
    done = subprocess.run([str(word) for word in (KYMO, *words)], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_functions_of_different_files_are_told_apart_and_a_chosen_name_is_one(two):
    run, other = two
    rows = run.query("SELECT name, count, parse_filename(file) AS file FROM trace.regions WHERE name IN ('parse', 'load', 'inner') "
                     "ORDER BY ALL")
    assert [tuple(row.values()) for row in rows] == [
        ("inner", 40, "__init__.py"), ("load", 20, "__init__.py"), ("parse", 20, "first.py"), ("parse", 20, "third.py")]
    names = set(json.loads(said("report", "-f", "json", run.path))["timing"])
    items = {item["name"] for item in json.loads(said("compare", "--anyway", "--all", "-f", "json", run.path, other.path))["rows"]}
    for told in names, items:
        assert {"parse (first.py)", "parse (third.py)", "<module> (second/__init__.py)", "load", "inner"} <= told
        assert "parse" not in told
