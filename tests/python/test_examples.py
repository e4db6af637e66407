"""The examples of the docstrings and of examples/ do what they say."""
import doctest
import importlib
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, run


@pytest.mark.parametrize("module", ["kymo", "kymo._kymo", "kymo._table", "kymo._query", "kymo._decorate"])
def test_the_examples_of_docstrings_work(module):
    import kymo

    result = doctest.testmod(importlib.import_module(module), extraglobs={"kymo": kymo})
    assert result.failed == 0
    assert result.attempted > 0 or module in ("kymo._query", "kymo._decorate")


def test_every_public_name_has_a_docstring():
    import kymo

    assert [name for name in kymo.__all__ if not name.startswith("_") and not getattr(kymo, name).__doc__] == []


@pytest.mark.parametrize("module", ["", "._timer", "._collector", "._memory", "._streams", "._reporter", "._compare"])
def test_the_examples_of_the_profiler_work(module, home, tmp_path):
    """In a process of its own: the first timer turns recording on."""
    (tmp_path / "examples.py").write_text(f"""
import doctest, importlib, kymo.profiler
names = {{name: getattr(kymo.profiler, name) for name in kymo.profiler.__all__}}
result = doctest.testmod(importlib.import_module("kymo.profiler{module}"), extraglobs=names)
assert result.failed == 0 and result.attempted > 0, result
assert all(thing.__doc__ for thing in names.values())
""")
    run([sys.executable, tmp_path / "examples.py"], home, tmp_path)


PROFILER = (ROOT / "docs/profiler.md").read_text()


def test_the_code_of_docs_profiler_runs_and_prints_what_it_shows(home, tmp_path):
    code = re.findall(r"```python\n(.*?)```", PROFILER, re.S)
    assert len(code) == 6
    (tmp_path / "page.py").write_text("\n".join(code))
    done = run([sys.executable, tmp_path / "page.py"], home, tmp_path)
    assert "Bottleneck: data_loading" in done.stdout and "same count: True" in done.stdout
    assert {"metrics.json", "metrics.csv", "report.html"} <= {path.name for path in tmp_path.iterdir()}


@pytest.fixture
def compiled(tmp_path):
    """compiled("hello"): compiles examples/hello.c as a user would."""
    def go(name):
        library = ROOT / "build/libkymo.so"
        if not library.exists() or not shutil.which("cc"):
            pytest.skip(f"there is no {library}, or no C compiler")
        program = tmp_path / name
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "-o", program,
                        ROOT / f"examples/{name}.c", f"-L{library.parent}", "-lkymo", f"-Wl,-rpath,{library.parent}"],
                       check=True)
        return program
    return go


def test_hello_c_compiles_and_records(compiled, supervise, home, tmp_path):
    program = compiled("hello")
    assert run([program], home, tmp_path).stdout == "1.6449\n"
    assert list((tmp_path / "live").iterdir()) == []
    recording = supervise("", words=[program])
    assert recording.stdout == "1.6449\n"
    assert recording.query("SELECT name, source, count FROM trace.regions") == [
        {"name": "work", "source": "c", "count": 100}]
    assert recording.one("SELECT count(*) FROM trace.steps") == 100
    assert recording.one("SELECT text FROM trace.marks") == "the loop begins"
    assert recording.one("SELECT count(*) FROM trace.counters WHERE name = 'sum'") == 100


def test_table_c_compiles_and_records(compiled, supervise):
    recording = supervise("", words=[compiled("table")])
    assert recording.query("SELECT count(*) AS n, sum(ms) AS ms, count(DISTINCT path) AS paths "
                           "FROM app.requests") == [{"n": 1000, "ms": 9750.0, "paths": 8}]
    assert recording.one("SELECT count(*) FROM app.requests WHERE status = 500") == 10


def test_train_py_learns_and_records_how(supervise):
    pytest.importorskip("torch", reason="no torch in this Python")
    recording = supervise("", words=[sys.executable, ROOT / "examples/train.py", "--steps", 6, "--evaluate-every", 3,
                                    "--seconds", 1000])
    lines = recording.stdout.splitlines()
    assert lines[0].startswith("1.3 M parameters")
    assert lines[-1].startswith("final loss ")
    assert float(lines[-1].split()[-1]) < 3.5
    rows = recording.query("SELECT duration_ns, data_ns, forward_ns, backward_ns, optimizer_ns FROM trace.steps")
    assert len(rows) == 6
    for row in rows:
        parts = [row[key] for key in ("data_ns", "forward_ns", "backward_ns", "optimizer_ns")]
        assert all(part > 0 for part in parts)
        assert 0.8 * row["duration_ns"] < sum(parts) <= row["duration_ns"]
    assert recording.column("SELECT text FROM trace.marks WHERE name = 'evaluation' ORDER BY ts_ns") == [
        "after 3 steps", "after 6 steps"]
    assert recording.one("SELECT count(*) FROM trace.counters WHERE name = 'loss'") == 6


def test_the_package_is_typed():
    import kymo

    assert (pathlib.Path(kymo.__file__).parent / "py.typed").exists()
