"""Every way to turn it on, and the blocks of the document that asks for them."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import base

ROOT = base.ROOT
SEED = ROOT.parent / "shared/seeds"
COMPAT = ROOT / "compat/python/kymo_compat"

TRAIN = """
import torch
from torch import nn
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.AdamW(net.parameters())
def train_step():
    loss = net(torch.ones(2, 4)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
for _ in range({steps}):
    train_step()
"""


@pytest.fixture
def stranger(tmp_path):
    """A Python that has torch and has never heard of kymo."""
    torch = pathlib.Path(__import__("importlib.util").util.find_spec("torch").origin).parents[1]
    found = subprocess.run([sys.executable, "-I", "-S", "-c",
                            f"import sys; sys.path.append({str(torch)!r}); import torch, sys\n"
                            "try:\n import kymo\nexcept ImportError: print('none')"],
                           capture_output=True, text=True, check=False)
    assert found.stdout == "none\n", found.stderr
    (tmp_path / "train.py").write_text(f"import sys\nsys.path.append({str(torch)!r})\n" + TRAIN.format(steps=4))
    return tmp_path


def test_kymo_run_torch_in_a_python_that_never_heard_of_kymo(home, stranger):
    # Without -I, which keeps kymo out: -s and an empty site folder do for a Python without it.
    python = pathlib.Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    done = subprocess.run([base.KYMO, "run", "-o", "out", "--torch-modules", "[02]", "--torch-every", "2", "--watch",
                           "loss@train_step", "--", python, "-s", "train.py"],
                          env=home, cwd=stranger, capture_output=True, text=True, check=False, timeout=base.SECONDS)
    assert done.returncode == 0, done.stderr
    recording = base.Recording(stranger / "out", done)
    assert recording.query("SELECT step, module, stage, count(*) AS n FROM python.torch_trace GROUP BY ALL ORDER BY ALL") == [
        {"step": step, "module": module, "stage": stage, "n": 1}
        for step in range(4)
        for module, stage in ([("0", "backward"), ("0", "forward"), ("2", "backward"), ("2", "forward")] if step % 2 == 0
                              else []) + [("AdamW", "step")]]
    assert recording.one("SELECT count(*) FROM python.variables WHERE name = 'loss'") == 4
    report = subprocess.run([base.KYMO, "report", "out"], env=home, cwd=stranger, capture_output=True, text=True, check=True)
    assert "torch module, per call" in report.stdout  # the summary has it where its lines suffice


def test_the_process_that_tries_a_build_is_no_child_of_the_program(home, tmp_path):
    """The known build is made unknown; the trial runs while the supervisor looks for children, ten times a second."""
    (tmp_path / "train.py").write_text("""
import sys, time
import torch
import kymo
from kymo import _torch_auto
c = _torch_auto.extension()
class Unknown:
    def __getattr__(self, name):
        return getattr(c, name)
    def known_callbacks(self):
        return False
_torch_auto.extension = Unknown
kymo.enable_torch_profiling()
net = torch.nn.Linear(1, 1)
for _ in range(1200):
    net(torch.ones(1, 1))
    if c.look()["callbacks"]:
        break
    time.sleep(0.1)
print(c.look()["callbacks"])
""")
    done = subprocess.run([base.KYMO, "run", "-o", "out", "--", sys.executable, "train.py"],
                          env={**home, "XDG_CACHE_HOME": str(tmp_path / "cache"), "KYMO_TORCH": "off"}, cwd=tmp_path,
                          capture_output=True, text=True, check=False, timeout=base.SECONDS)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    assert "not record" not in done.stderr
    assert base.Recording(tmp_path / "out", done).one("SELECT not_recorded FROM kymo.runs") == 0


@pytest.mark.parametrize("name", ["KYMO_TORCH", "PROBING_TORCH_PROFILING"])
def test_a_variable_is_enough_where_kymo_is_installed(home, tmp_path, name):
    """As the .pth file of an installed kymo does it: one line as Python starts."""
    (tmp_path / "train.py").write_text("from kymo import _auto\n_auto.start()\n" + TRAIN.format(steps=2))
    done = base.run([sys.executable, tmp_path / "train.py"], {**home, name: "on"}, tmp_path)
    (made,) = pathlib.Path(home["KYMO_DIR"]).iterdir()
    assert base.Recording(made, done).one("SELECT count(*) FROM python.torch_trace WHERE stage = 'step'") == 2


# --- the document ----------------------------------------------------------------------------------------------

def blocks(language):
    files = sorted(SEED.glob("004_*"))
    if not files:
        pytest.skip(f"{SEED} is not there: the document whose blocks are run comes with no clone")
    return re.findall(rf"```{language}\n(.*?)```", files[0].read_text(), re.S)


def block_with(language, word):
    (block,) = [block for block in blocks(language) if word in block]
    return block


def test_the_hooks_of_the_document_work_beside_ours(home, tmp_path):
    text = block_with("python", "forward_hook")
    code = """
import torch, kymo
rows = []
def record_trace(module, stage, memory):
    rows.append((type(module).__name__, stage, memory))
def memory_stats():
    return None
""" + text + """
kymo.enable_torch_profiling()
net = torch.nn.Linear(2, 1)
net.register_forward_hook(forward_hook)
net.register_full_backward_hook(backward_hook)
net(torch.ones(1, 2)).sum().backward()
print(rows)
"""
    (tmp_path / "hooks.py").write_text(code)
    done = base.run([sys.executable, tmp_path / "hooks.py"], home, tmp_path)
    assert done.stdout == "[('Linear', 'forward', None), ('Linear', 'backward', None)]\n"
    (made,) = pathlib.Path(home["KYMO_DIR"]).iterdir()
    assert base.Recording(made, done).column("SELECT stage FROM python.torch_trace WHERE module = 'Linear' ORDER BY ts_ns") == [
        "forward", "backward"]


def test_both_ways_of_the_document_to_turn_it_on(home, tmp_path):
    lines = [line for line in block_with("bash", "PROBING_TORCH_PROFILING").splitlines() if line and line[0] != "#"]
    command, *program = lines
    (tmp_path / "train.py").write_text("from kymo import _auto\n_auto.start()\n" + TRAIN.format(steps=2))
    env = {**home, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(COMPAT)}
    base.run(["sh", "-c", command], env, tmp_path)
    (tmp_path / "other.py").write_text("\n".join(program) + TRAIN.format(steps=2))
    base.run([sys.executable, tmp_path / "other.py"], env, tmp_path)
    made = sorted(pathlib.Path(home["KYMO_DIR"]).iterdir())
    assert len(made) == 2
    for recording in made:
        assert base.Recording(recording, base.run(["true"], env, tmp_path)).one(
            "SELECT count(*) FROM python.torch_trace WHERE stage = 'backward' AND module = '0'") == 2


def test_the_statements_of_the_document_run_as_they_stand(home, tmp_path):
    (tmp_path / "train.py").write_text("import kymo\nkymo.enable_torch_profiling()\n" + TRAIN.format(steps=103))
    done = base.run([sys.executable, tmp_path / "train.py"], home, tmp_path)
    (made,) = pathlib.Path(home["KYMO_DIR"]).iterdir()
    recording = base.Recording(made, done)
    statements = [statement.strip() for block in blocks("sql") for statement in block.split(";") if statement.strip()]
    answers = {}
    for statement in statements:
        out = base.run([base.KYMO, "query", "-f", "json", recording.path, statement], home, tmp_path).stdout
        answers[statement] = json.loads(out)
    (steps,) = [rows for statement, rows in answers.items() if "step > 100" in statement]
    assert {row["step"] for row in steps} == {101, 102}
    (modules,) = [rows for statement, rows in answers.items() if "avg_duration" in statement]
    assert {row["module"] for row in modules} == {"0", "1", "2", "Sequential", "backward", "AdamW"}
    assert {row["peak_memory"] for row in modules} == {None}
    (tables,) = [rows for statement, rows in answers.items() if "information_schema" in statement]
    assert {"torch_trace", "backtrace", "variables"} <= {row["table_name"] for row in tables}


def test_the_torch_of_debian_whose_python_never_heard_of_kymo(home, tmp_path):
    """torch 1.13: other operators for scopes, other places of the numbers."""
    python = "/usr/bin/python3"
    found = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], env=home, capture_output=True,
                           text=True, check=False)
    if not found.stdout.startswith("1.13"):
        pytest.skip(f"{python} has no torch 1.13: apt-get install python3-torch")
    (tmp_path / "train.py").write_text(TRAIN.format(steps=4))
    done = subprocess.run([base.KYMO, "run", "-o", "out", "--torch", "--", python, "train.py"],
                          env={**home, "XDG_CACHE_HOME": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True,
                          check=False, timeout=base.SECONDS)
    assert done.returncode == 0, done.stderr
    rows = base.Recording(tmp_path / "out", done).query(
        "SELECT module, stage, count(*) AS n FROM python.torch_trace GROUP BY ALL ORDER BY ALL")
    assert rows == [{"module": module, "stage": stage, "n": 4} for module, stage in [
        ("0", "backward"), ("0", "forward"), ("1", "backward"), ("1", "forward"), ("2", "backward"), ("2", "forward"),
        ("AdamW", "step"), ("Sequential", "backward"), ("Sequential", "forward"), ("backward", "backward")]]
