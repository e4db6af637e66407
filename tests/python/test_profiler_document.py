"""The code of the document that kitsune.profiler has to serve, taken from it as it stands.

Supplied here, and nothing else: a small model, loss, optimizer and data, what the document calls without showing it
(config1, config2, profile_training, run_with_profiling, tasks and streams), and cpu where it writes cuda.
"""
import json
import os
import re
import subprocess
import sys

import pytest
from conftest import KYMO, ROOT, SECONDS, without_kymo

FOLDER = ROOT.parent / "shared/seeds"
FOUND = sorted(FOLDER.glob("003_*.txt"))
TEXT = FOUND[0].read_text() if FOUND else ""
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.S | re.M)
PYTHON = [text for language, text in BLOCKS if language == "python"]

pytestmark = pytest.mark.skipif(not FOUND, reason=f"the document is not in {FOLDER}")

RUNNER = '''
import contextlib, io, json, os, sys, time, traceback
import torch
torch.set_num_threads(1)
from kitsune.profiler import CUDATimer, MetricsCollector, Reporter

class Loader:
    """Three batches; answers next(), too."""
    def __init__(self, make): self.make = make
    def __iter__(self): return (self.make() for _ in range(3))
    def __next__(self): return self.make()

def profile_training(config):
    collector = MetricsCollector()
    for _ in range(12):
        with collector.measure_time("iteration"):
            time.sleep(config / 1e3)
    return collector

def supplies():
    model = torch.nn.Linear(8, 4)
    collector = profile_training(1)
    for name in ("forward_pass", "backward_pass"):
        with collector.measure_time(name): pass
    collector.record("batch_size", 16)
    return {
        "torch": torch, "model": model, "input": torch.randn(16, 8), "loss": model.weight.sum(), "output": None,
        "criterion": torch.nn.CrossEntropyLoss(), "optimizer": torch.optim.SGD(model.parameters(), 1e-3), "num_epochs": 2,
        "train_loader": [(torch.randn(16, 8), torch.randint(4, (16,))) for _ in range(3)],
        "dataloader": Loader(lambda: torch.randn(16, 8)), "tasks": range(4), "execute_task": lambda task: sum(range(1000)),
        "streams": [torch.cpu.Stream() for _ in range(4)], "config1": 3, "config2": 1,
        "profile_training": profile_training, "run_with_profiling": lambda use_kitsune: profile_training(1 if use_kitsune else 3),
        "reporter": Reporter(collector), "timer": CUDATimer(), "MetricsCollector": MetricsCollector,
    }

answers = []
for text in json.load(open(sys.argv[1])):
    out, error, names = io.StringIO(), None, supplies()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(text, "block", "exec"), names)
    except BaseException:
        error = traceback.format_exc()
    known = {key: value for key, value in names.items() if isinstance(value, (int, float, str, dict, list))
             and not key.startswith("__") and key not in ("train_loader", "streams")}
    answers.append({"error": error, "out": out.getvalue(), "names": json.loads(json.dumps(known, default=repr))})
json.dump(answers, open("answers.json", "w"))
'''


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    pytest.importorskip("torch", reason="no torch in this Python")
    place = tmp_path_factory.mktemp("document")
    (place / "live").mkdir(mode=0o700)
    (place / "runner.py").write_text(RUNNER)
    (place / "blocks.json").write_text(json.dumps(
        [text.replace("device='cuda'", "device='cpu'").replace("torch.cuda.", "torch.cpu.") for text in PYTHON]))
    env = {**without_kymo(os.environ), "KYMO_DIR": str(place / "live"), "KYMO_BIN": str(KYMO), "KYMO_COMPAT": "on",
           "PYTHONPATH": str(ROOT / "compat/python/kymo_compat")}
    done = subprocess.run([sys.executable, "runner.py", "blocks.json"], cwd=place, env=env, capture_output=True, text=True,
                          check=False, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return place, json.loads((place / "answers.json").read_text())


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_a_block_of_the_document_runs(answers, number):
    place, said = answers
    assert said[number]["error"] is None, f"{PYTHON[number]}\n{said[number]['error']}"


def answer(said, word):
    """What the one block with that text in it said."""
    (number,) = [i for i, text in enumerate(PYTHON) if word in text]
    return said[number]


def test_the_blocks_say_what_they_promise(answers):
    place, said = answers
    assert re.fullmatch(r"Forward pass: \d+\.\d\d ms\n", answer(said, "Forward pass:")["out"])
    assert re.search(r"Peak memory: \d+\.\d\d GB\n$", answer(said, "Peak memory")["out"])
    assert re.search(r"^iteration +6 ", answer(said, "collector.record('loss'")["out"], re.M)
    assert re.search(r"^loss +6 ", answer(said, "collector.record('loss'")["out"], re.M)
    assert answer(said, "kernel_launch")["names"]["elapsed"] > 0
    assert answer(said, "get_allocation_timeline")["names"]["timeline"][0]["kind"] == "sample"
    assert "no activity" in answer(said, "print_stream_efficiency")["out"]
    assert re.fullmatch(r"Bottleneck: (data_loading|forward|backward)\n", answer(said, "analyze_bottlenecks")["out"])
    assert float(re.search(r"Speedup: ([\d.]+)x", answer(said, "compare_runs(metrics1, metrics2)")["out"]).group(1)) > 1
    assert float(re.search(r"Speedup: ([\d.]+)x", answer(said, "use_kitsune=False")["out"]).group(1)) > 1


def test_the_files_are_there_and_json_has_the_documents_structure(answers):
    place, said = answers
    assert {"metrics.json", "report.html", "metrics.csv", "profile.json"} <= set(os.listdir(place))
    (shown,) = [json.loads(text) for language, text in BLOCKS if language == "json"]
    written = json.loads((place / "profile.json").read_text())
    missing = [path for path in paths(shown) if path not in paths(written)]
    assert missing == []


def paths(data, before=()):
    """The keys of a JSON document, with those above them."""
    found = set()
    for key, value in data.items():
        found.add((*before, key))
        if isinstance(value, dict):
            found |= paths(value, (*before, key))
    return found


def test_every_block_is_accounted_for():
    assert len(PYTHON) == 15 and len(BLOCKS) == 16
