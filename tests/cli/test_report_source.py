"""kymo report as HTML holds the text of source files that the recording names: which, how many, and none with --no-source."""
import json
import re
import socket
import subprocess

import duckdb
import pytest
from conftest import PROGS
from made import Made

TEXT = "def work():\n    return 'the text of the source'  # </script><script>window.hacked=1</script>\n"


def data_of(path):
    return json.loads(re.search(r'id="kymo-data">(.*?)</script>', path.read_text(), re.S)[1])


@pytest.fixture
def made(kymo, tmp_path):
    """made(samples): a packed recording with these (stack, count)."""
    subprocess.run([PROGS / "made_run", tmp_path / "run", "train", "10"], check=True)
    assert kymo("pack", tmp_path / "run", tmp_path / "template.kymo").status == 0

    def make(samples):
        with Made(tmp_path / "template.kymo", tmp_path / "made.kymo") as rows:
            for stack, count in samples:
                rows.sample(stack, count)
            rows.db.execute("UPDATE kymo.runs SET cwd = ?, host = ?", [str(kymo.cwd), socket.gethostname()])
        return tmp_path / "made.kymo"
    return make


def test_the_text_is_in_the_report_and_can_be_left_out(kymo, made):
    (kymo.cwd / "app.py").write_text(TEXT)
    recording = made([([f"work ({kymo.cwd}/app.py:2)"], 20)])
    done = kymo("report", recording, "with.html")
    if "built without HTML" in done.err:
        pytest.skip("this kymo was built without HTML reports")
    assert done.status == 0
    assert re.fullmatch(r"kymo: the report holds the text of 1 source file; --no-source leaves it out\nkymo: with.html, .*\n", done.err)
    file, = data_of(kymo.cwd / "with.html")["sources"]
    assert (file["text"], file["own"], file["newer"], file["samples"]) == (TEXT, True, True, 20)
    done = kymo("report", "--no-source", recording, "without.html")
    assert done.status == 0 and re.fullmatch(r"kymo: without.html, .*\n", done.err)
    file, = data_of(kymo.cwd / "without.html")["sources"]
    assert (file["text"], file["why"], file["samples"]) == (None, "the report was made with --no-source", 20)
    assert "the text of the source" not in (kymo.cwd / "without.html").read_text()


def test_a_packed_file_from_another_machine_gets_no_text_of_this_one(kymo, made, tmp_path):
    (kymo.cwd / "app.py").write_text(TEXT)
    recording = made([([f"work ({kymo.cwd}/app.py:2)"], 20)])
    with duckdb.connect(str(recording)) as db:
        db.execute("UPDATE kymo.runs SET host = 'elsewhere'")
    done = kymo("report", recording, "it.html")
    if "built without HTML" in done.err:
        pytest.skip("this kymo was built without HTML reports")
    file, = data_of(kymo.cwd / "it.html")["sources"]
    assert (file["text"], file["why"]) == (None, "the recording comes from another machine") and "source file" not in done.err


def test_one_host_of_a_packed_job_does_not_stand_for_the_others(kymo, made):
    (kymo.cwd / "app.py").write_text(TEXT)
    recording = made([([f"work ({kymo.cwd}/app.py:2)"], 20)])
    with duckdb.connect(str(recording)) as db:
        db.execute("UPDATE kymo.runs SET host = 'elsewhere'")
        db.execute("INSERT INTO kymo.runs SELECT * REPLACE (? AS host) FROM kymo.runs", [socket.gethostname()])
    done = kymo("report", recording, "it.html")
    if "built without HTML" in done.err:
        pytest.skip("this kymo was built without HTML reports")
    assert {file["text"] for file in data_of(kymo.cwd / "it.html")["sources"]} == {None}


def test_the_title_names_program_and_recording(kymo, made):
    recording = made([([f"work ({kymo.cwd}/app.py:2)"], 1)])
    done = kymo("report", recording, "it.html")
    if "built without HTML" in done.err:
        pytest.skip("this kymo was built without HTML reports")
    assert "<title>train.py · made.kymo · kymo</title>" in (kymo.cwd / "it.html").read_text()


def test_a_report_has_twenty_texts_and_a_megabyte_at_most(kymo, made):
    samples = []
    for i in range(30):
        (kymo.cwd / f"f{i:02}.py").write_text(f"# {i}\n" + "#" * (300_000 if i < 5 else 10))
        samples.append(([f"f ({kymo.cwd}/f{i:02}.py:1)"], 40 - i))
    done = kymo("report", made(samples), "it.html")
    if "built without HTML" in done.err:
        pytest.skip("this kymo was built without HTML reports")
    files = data_of(kymo.cwd / "it.html")["sources"]
    texts = [len(file["text"]) for file in files if file["text"] is not None]
    assert len(files) == 30 and len(texts) == 20 and sum(texts) <= 1 << 20
    assert sum(1 for size in texts if size > 100_000) == 3
    reasons = [file["why"] for file in files if file["text"] is None]
    assert reasons == ["a report has room for 1 MB of source"] * 2 + ["a report has the text of 20 files"] * 8


def test_a_library_with_little_time_has_no_text(kymo, made):
    folder = kymo.cwd / "lib/python3.11/site-packages/tool"
    folder.mkdir(parents=True)
    for name in ("big.py", "small.py"):
        (folder / name).write_text("x = 1\n")
    (kymo.cwd / "app.py").write_text(TEXT)
    done = kymo("report", made([([f"f ({folder}/big.py:1)", f"work ({kymo.cwd}/app.py:2)"], 199), ([f"f ({folder}/small.py:1)"], 1)]),
                "it.html")
    if "built without HTML" in done.err:
        pytest.skip("this kymo was built without HTML reports")
    files = {file["file"].rsplit("/", 1)[1]: file for file in data_of(kymo.cwd / "it.html")["sources"]}
    assert list(files) == ["app.py", "big.py", "small.py"], "own code first, then by time"
    assert (files["app.py"]["text"], files["big.py"]["text"], files["small.py"]["text"]) == (TEXT, "x = 1\n", None)
    assert files["small.py"]["why"] == "it has less than 1 % of the time"
