"""%kymo and %%kymo in a real kernel, without a browser."""
import os

import pytest

from conftest import KYMO

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: make test installs it")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: make test installs it")

SECONDS = 120
SPIN = """import time
def prepare(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))"""


@pytest.fixture
def execute(home, tmp_path, monkeypatch):
    """Runs cells in one kernel; the outputs of each."""

    def run(*cells):
        for name in [name for name in os.environ if name.startswith("KYMO")]:
            monkeypatch.delenv(name)
        for name, value in {**home, "KYMO_BIN": str(KYMO), "PYTHONSAFEPATH": "1"}.items():
            monkeypatch.setenv(name, value)
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in ("%load_ext kymo", *cells)]
        nbclient.NotebookClient(notebook, timeout=SECONDS, allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}).execute()
        return [cell.outputs for cell in notebook.cells[1:]]

    return run


def shown(outputs):
    (one,) = [output.data for output in outputs if output.output_type == "display_data"]
    return one


def test_a_cell_shows_its_costliest_function_and_the_page(execute):
    _, outputs, after = execute(SPIN, "%%kymo\nprepare(0.6)\nvalue = 41", "print(value + 1)")
    data = shown(outputs)
    assert "<code>prepare</code>, line " in data["text/html"]
    assert '<iframe sandbox="allow-scripts"' in data["text/html"] and "&lt;!doctype html&gt;" in data["text/html"]
    assert "prepare" in data["text/plain"]
    assert after[0].text == "42\n"


def test_a_line_is_recorded_too(execute):
    _, outputs = execute(SPIN, "%kymo --no-page prepare(0.4)")
    html = shown(outputs)["text/html"]
    assert "prepare" in html and "<iframe" not in html


def test_the_recording_is_a_variable_that_answers_sql(execute):
    _, outputs = execute("%%kymo --no-page --name first\nimport kymo\nwith kymo.region('mine'):\n    pass",
                         "first.query(\"SELECT count FROM trace.regions WHERE name = 'mine'\").rows()")
    assert outputs[0].data["text/plain"] == "[{'count': 1}]"


def test_cells_are_compared(execute):
    code = "import kymo, time\nfor _ in range(20):\n    kymo.step('step')\n    time.sleep({})\nkymo.step_end()"
    _, outputs = execute("%%kymo --no-page\n" + code.format(0.001), "%%kymo --no-page --compare before\n" + code.format(0.008))
    assert "slower" in shown(outputs)["text/html"]


def test_an_error_of_the_cell_stays_an_error(execute):
    (outputs,) = execute("%%kymo --no-page\n1 / 0")
    assert "ZeroDivisionError" in [output.ename for output in outputs if output.output_type == "error"]
    assert "text/html" in shown(outputs)


@pytest.mark.parametrize("line, said", [("--compare nothing", "nothing is no Recording; record one first: %%kymo --name nothing"),
                                        ("--frobnicate", "unrecognized arguments: --frobnicate")])
def test_wrong_words_are_a_sentence(execute, line, said):
    (outputs,) = execute(f"%%kymo {line}\npass")
    text = "".join(output.get("text", "") + output.get("evalue", "") for output in outputs)
    assert said in text


def test_names_in_a_recording_stay_text(execute):
    (outputs,) = execute("%%kymo\nimport kymo, time\nwith kymo.region('</iframe><script>alert(1)</script>'):\n    time.sleep(0.3)")
    assert "<script>" not in shown(outputs)["text/html"]


def test_steps_are_a_chart_and_results_and_recordings_show_themselves(execute):
    code = ("%%kymo --no-page --name r\nimport kymo, time\nfor _ in range(5):\n    kymo.step()\n    time.sleep(0.002)\n"
            "kymo.step_end()")
    outputs, result, record = execute(code, "r.query(\"SELECT '<b>' AS name FROM range(60)\")", "r")
    data = shown(outputs)["text/html"]
    assert data.count("<rect ") == 5 and "<figcaption>5 steps, median" in data
    table = result[0].data["text/html"]
    assert table.count("<td>&lt;b&gt;</td>") == 50 and "60 rows, the first 50 shown" in table
    assert "<figcaption>5 steps" in record[0].data["text/html"] and "s recorded in" in record[0].data["text/html"]
