"""The text classifier on libtorch prints what SQL says of the same run."""
import re
import subprocess

import pytest
from programs import BUILD, ROOT, Home

EXAMPLE = ROOT / "examples/classifier"
LINE = re.compile(r"^\d{4}\.\d\d\.\d\d-\d\d:\d\d:\d\d\.\d\d - <info> \[prof\] (\w+): total_time: (\d+) nsec nr_entries: (\d+)$")


@pytest.fixture(scope="module")
def built():
    done = subprocess.run([EXAMPLE / "build"], capture_output=True, text=True, timeout=400, check=False)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return BUILD / "classifier"


@pytest.fixture(scope="module")
def run(built, tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("classifier"))
    home.said = home.run(built / "classifier", built / "cnn_trace.pt", EXAMPLE / "vocab.txt", "0", VACCEL_PROF_ENABLED="enabled")
    home.lines = home.said.splitlines()
    home.printed = [(m[1], int(m[2]), int(m[3])) for m in map(LINE.match, home.lines) if m]
    return home


def queries():
    return re.findall(r"```sql\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.S)


def agree(rows, printed):
    """The same regions and counts; times may differ by how well the clock was known when the line was printed."""
    assert [(row["name"], row["nr_entries"]) for row in rows] == [(name, count) for name, _, count in printed]
    for row, (_, total, _) in zip(rows, printed):
        assert int(row["total_time"]) == pytest.approx(total, rel=0.01, abs=10)


def test_it_prints_three_lines_for_each_inference(run):
    assert [(name, count) for name, _, count in run.printed] == [
        (name, i) for i in range(1, 11) for name in ("torch_input", "torch_run", "torch_out")]


def test_the_output_has_its_shape(run):
    assert run.lines[0] == "== [Vocab Loaded] =="
    assert len([line for line in run.lines if line == "==========Show Result=========="]) == 10
    assert {line for line in run.lines if line.startswith("Prediction: ")} == {
        "Prediction: praise", "Prediction: complaint", "Prediction: neither"}
    assert re.fullmatch(r"Total Time Taken: \d+ milliseconds", run.lines[-4])
    assert run.lines[-3:-1] == ["Total nr of Inference invocations: 10", "Length: 6"]


def test_sql_has_the_printed_totals(run):
    agree(run.rows(queries()[0]), sorted(run.printed[-3:]))


def test_sql_has_every_printed_line(run):
    agree(run.rows(queries()[1]), sorted(run.printed, key=lambda line: (line[0], line[2])))


def test_sql_has_what_printing_cannot_tell(run):
    rows = run.rows(queries()[2])
    assert [row["name"] for row in rows] == ["torch_input", "torch_out", "torch_run"]
    assert all(row["min_ns"] <= row["p50_ns"] <= row["max_ns"] for row in rows)


def test_without_its_variable_it_prints_no_lines_and_records_nothing(built, tmp_path):
    home = Home(tmp_path)
    said = home.run(built / "classifier", built / "cnn_trace.pt", EXAMPLE / "vocab.txt", "0")
    assert "[prof]" not in said
    assert home.recordings() == []


def test_a_missing_vocabulary_is_a_sentence(built, tmp_path):
    done = subprocess.run([built / "classifier", built / "cnn_trace.pt", tmp_path / "none", "0"], capture_output=True, text=True,
                          check=False, env=Home(tmp_path).env)
    assert done.returncode == 1
    assert done.stderr == f"classifier: no words in {tmp_path / 'none'}; give the vocabulary of make_model.py\n"
