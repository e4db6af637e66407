"""Modules of PyTorch in python.torch_trace: whose row it is, in which step, and what is given back afterwards."""
import re

import pytest

NET = """
import torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.head = nn.Linear(4, 1)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def train_step():
    loss = net(torch.ones(3, 4)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
"""
ON = NET + "kymo.enable_torch_profiling()\n"
TRAIN = ON + "for _ in range(3):\n    train_step()\n"

COUNTS = "SELECT module, stage, count(*) AS n FROM python.torch_trace GROUP BY ALL ORDER BY ALL"


@pytest.fixture(scope="module")
def trained(record_once):
    return record_once(TRAIN)


def counts(recording):
    return {(row["module"], row["stage"]): row["n"] for row in recording.query(COUNTS)}


def test_every_module_has_a_forward_and_a_backward_in_each_step(trained):
    assert counts(trained) == {
        ("Net", "forward"): 3, ("Net", "backward"): 3,
        ("layers.0", "forward"): 3, ("layers.0", "backward"): 3,
        ("layers.1", "forward"): 3, ("layers.1", "backward"): 3,
        ("head", "forward"): 3, ("head", "backward"): 3,
        ("backward", "backward"): 3, ("SGD", "step"): 3,
    }


def test_rows_of_a_step_are_numbered_from_0_and_memory_is_null_on_a_cpu(trained):
    rows = trained.query("SELECT step, seq, module, stage, allocated, max_allocated, cached, device "
                               "FROM python.torch_trace ORDER BY step, seq")
    assert [(r["step"], r["seq"]) for r in rows] == [(step, seq) for step in range(3) for seq in range(10)]
    assert {(r["allocated"], r["max_allocated"], r["cached"], r["device"]) for r in rows} == {(None,) * 4}
    assert [r["module"] for r in rows[:10]] == ["layers.0", "layers.1", "head", "Net",
                                                "head", "layers.1", "layers.0", "Net", "backward", "SGD"]


def test_self_time_is_without_the_modules_inside(trained):
    wrong = trained.query("""
        SELECT p.step, p.stage FROM python.torch_trace p, python.torch_trace c
        WHERE p.module = 'Net' AND c.depth = p.depth + 1 AND c.step = p.step AND c.stage = p.stage
        GROUP BY p.step, p.stage, p.duration, p.self HAVING abs(p.duration - sum(c.duration) - p.self) > 1e-7""")
    assert wrong == []


def test_what_a_row_costs_is_measured_and_in_the_overhead(trained):
    """Rows, not zones, are its events: backward has no zones."""
    assert trained.query("""
        SELECT events, cost_ns_per_event > 0 AS known, abs(total_ns - events * cost_ns_per_event) < 1 + events / 10 AS fits,
               pct > 0 AS pct
        FROM kymo.overhead WHERE source = 'torch'""") == [
        {"events": 30, "known": True, "fits": True, "pct": True}]


def test_modules_are_zones_of_their_thread_so_that_the_timeline_shows_them(trained):
    assert trained.query("SELECT name, depth FROM trace.zones WHERE source = 'torch' AND step = 0 ORDER BY start_ns") == [
        {"name": name, "depth": depth} for name, depth in [
            ("Net", 0), ("layers.0", 1), ("layers.1", 1), ("head", 1), ("SGD.zero_grad", 0), ("backward", 0),
            ("SGD.step", 0)]]


def test_steps_have_phases_without_a_mark_in_the_program(trained):
    assert trained.query("""
        SELECT step, name, forward_ns > 0 AS forward, backward_ns > 0 AS backward, optimizer_ns > 0 AS optimizer,
               forward_ns + backward_ns + optimizer_ns <= duration_ns AS fits FROM trace.steps ORDER BY step""") == [
        {"step": step, "name": "step", "forward": True, "backward": True, "optimizer": True, "fits": True}
        for step in range(3)]


def test_waits_for_a_data_loader_are_the_data_phase(record):
    recording = record(ON + """
import time
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.ones(4)
for batch in torch.utils.data.DataLoader(Slow(), batch_size=2):
    train_step()
""")
    assert recording.one("SELECT min(data_ns) >= 40e6 FROM trace.steps") is True
    assert recording.one("SELECT count(*) FROM trace.zones WHERE name = 'DataLoader.next'") == 3  # and the end


CROSSED = """
SELECT count(*) FROM (SELECT start_ns < max(start_ns + duration_ns) OVER (
    PARTITION BY tid, depth ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS crossed FROM trace.zones)
WHERE crossed"""


def test_scopes_that_python_opens_in_a_call_do_not_cross_the_calls(supervise):
    """torch opens and closes them inside of functions of its own, which are zones where calls are recorded."""
    recording = supervise(NET + """
for batch in torch.utils.data.DataLoader(torch.ones(6, 4), batch_size=2):
    train_step()
""", env={"KYMO_PYTHON": "on", "KYMO_SKIP": "0"})
    assert recording.one("SELECT count(*) FROM trace.steps") == 3
    assert recording.one("SELECT min(data_ns) > 0 AND min(optimizer_ns) > 0 FROM trace.steps") is True
    assert recording.one("SELECT count(*) FROM trace.zones WHERE name = '_BaseDataLoaderIter.__next__'") == 3
    assert recording.query("FROM trace.open_zones") == []
    assert recording.one(CROSSED) == 0


def test_steps_of_the_user_come_before_ours(record):
    recording = record(ON + """
for _ in range(3):
    kymo.step()
    train_step()
    train_step()
kymo.step_end()
""")
    assert recording.query("SELECT step, count(*) AS n FROM python.torch_trace GROUP BY step ORDER BY step") == [
        {"step": step, "n": 20} for step in range(3)]
    assert recording.query("SELECT step, forward_ns > 0 AND backward_ns > 0 AND optimizer_ns > 0 AS phases "
                           "FROM trace.steps ORDER BY step") == [{"step": step, "phases": True} for step in range(3)]


def test_in_inference_root_forwards_are_counted_but_are_no_steps(record):
    recording = record(ON + "with torch.no_grad():\n    for _ in range(3):\n        net(torch.ones(1, 4))\n")
    assert recording.query("SELECT step, module FROM python.torch_trace ORDER BY step, seq") == [
        {"step": step, "module": module} for step in range(3) for module in ["layers.0", "layers.1", "head", "Net"]]
    assert recording.query("FROM trace.steps") == []


EVALUATED = ON + """
import time
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, i):
        time.sleep(0.01)
        return torch.ones(4)
loader = torch.utils.data.DataLoader(Slow(), batch_size=2)
def evaluate():
    with torch.no_grad():
        for batch in loader:
            net(batch)
            net.head(batch)
def serve():
    with torch.no_grad():
        for _ in range(3):
            time.sleep(0.3)
            net(torch.ones(1, 4))
"""


def test_an_evaluation_over_a_data_loader_has_a_step_for_each_batch(record):
    recording = record(EVALUATED + "evaluate()\n")
    assert recording.query("SELECT step, name, data_ns >= 20e6 AS data, forward_ns > 0 AS forward FROM trace.steps "
                           "ORDER BY step") == [
        {"step": step, "name": "inference", "data": True, "forward": True} for step in range(3)]
    assert recording.query("SELECT step, count(*) AS n FROM python.torch_trace GROUP BY step ORDER BY step") == [
        {"step": step, "n": 5} for step in range(3)]


def test_what_happens_between_loops_over_a_data_loader_is_in_no_step(record):
    """Requests between them are 0.3 s apart; a loop that asks again where StopIteration is handled goes on."""
    recording = record(EVALUATED + """
serve()
evaluate()
serve()
evaluate()
batches = iter(())
with torch.no_grad():
    for _ in range(4):
        try:
            batch = next(batches)
        except StopIteration:
            batches = iter(loader)
            batch = next(batches)
        net(batch)
""")
    assert recording.one("SELECT max(duration_ns) < 300e6 FROM trace.steps") is True
    assert recording.one("SELECT count(*) FROM trace.steps") == 9  # the last loop ends with a batch in hand


def test_training_after_inference_counts_from_0_and_begins_with_its_own_forward(record):
    recording = record(EVALUATED + "serve()\ntrain_step()\ntrain_step()\n")
    assert recording.query("SELECT step, name, duration_ns < 300e6 AS short FROM trace.steps ORDER BY step") == [
        {"step": step, "name": "step", "short": True} for step in range(2)]


def test_shared_modules_and_several_models_are_told_apart(record):
    recording = record(ON + """
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        shared = nn.Linear(4, 4)
        self.left, self.right = nn.Sequential(shared), nn.Sequential(shared)
    def forward(self, x):
        return self.left(x) + self.right(x)
one, two = Pair(), Pair()
one(torch.ones(1, 4))
two(torch.ones(1, 4))
""")
    assert recording.query("SELECT model, module FROM python.torch_trace ORDER BY ts_ns") == [
        {"model": model, "module": module} for model in ["Pair", "Pair#2"]
        for module in [model, "left", "left.0", "right", "right.0"]]


def test_names_go_through_wrappers_and_unregistered_parts_have_their_class(record):
    recording = record(ON + """
class Hidden(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = [nn.Linear(4, 4)]
        self.inner = nn.DataParallel(nn.Sequential(nn.Linear(4, 4)))
    def forward(self, x):
        return self.inner(self.parts[0](x))
Hidden()(torch.ones(1, 4))
""")
    assert recording.column("SELECT module FROM python.torch_trace ORDER BY ts_ns, depth") == [
        "Hidden", "Linear", "inner", "inner", "inner.0"]


LIT = NET + """
class Lit(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(4, 1)])
        self.loss = nn.MSELoss()
    def training_step(self, x):
        return self.loss(self.heads[0](self.enc(x)), torch.zeros(1, 1))
class Trainer:
    def fit(self, model, steps=2):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            model.training_step(torch.ones(1, 4)).backward()
            optimizer.step()
"""
PARTS = ["enc", "enc.0", "enc.1", "heads.0", "loss"]


def test_parts_of_a_module_that_is_never_called_have_their_names(record):
    """As in Lightning: training_step() calls the parts of self. The modules are made before recording begins."""
    recording = record(LIT + "lit = Lit()\nkymo.enable_torch_profiling()\nTrainer().fit(lit)\n")
    for stage in ("forward", "backward"):
        assert recording.query(f"SELECT module, model, count(*) AS n FROM python.torch_trace WHERE stage = '{stage}' "
                               "AND model IS NOT NULL GROUP BY ALL ORDER BY module") == [
            {"module": module, "model": "Lit", "n": 2} for module in PARTS]
    assert recording.column("SELECT model FROM device.models ORDER BY model") == ["enc", "heads.0", "loss"]


def test_an_owner_is_found_around_copies_wrappers_and_other_owners(record):
    recording = record(LIT + """
import copy
class Outer(nn.Module):
    def __init__(self, lit):
        super().__init__()
        self.lit = lit
    def run(self):
        Trainer().fit(self.lit, 1)
class Wrapper(nn.Module):  # as torch.compile's
    def __init__(self, module):
        super().__init__()
        self._orig_mod = module
kymo.enable_torch_profiling()
lit = Lit()
wrapped = Wrapper(lit)
Trainer().fit(lit, 1)            # a wrapper is no owner
Trainer().fit(copy.deepcopy(lit), 1)
Outer(Lit()).run()
net(torch.ones(1, 4))            # a model stays one, and so does a wrapped one
lit.forward = lambda x: x
lit(1)
""")
    assert recording.column("SELECT model || ' ' || module FROM python.torch_trace WHERE stage = 'forward' AND "
                            "contains(module, 'head') AND model <> 'Net' ORDER BY ts_ns") == [
        "Lit heads.0", "Lit#2 heads.0", "Outer lit.heads.0"]
    assert recording.column("SELECT module FROM python.torch_trace WHERE depth = 0 AND stage = 'forward' "
                            "ORDER BY ts_ns")[-2:] == ["Net", "Lit"]


def test_owners_are_found_in_closures_and_globals(record):
    recording = record(LIT + """
kymo.enable_torch_profiling()
lit = Lit()
def from_globals():
    return lit.enc(torch.ones(1, 4))
def around():
    other = Net()
    def inside():
        return other.head(torch.ones(1, 4))
    inside()
from_globals()
around()
""")
    assert recording.column("SELECT model || ' ' || module FROM python.torch_trace WHERE depth = 0 ORDER BY ts_ns") == [
        "Lit enc", "Net head"]


def test_a_part_that_outlives_its_owner_keeps_its_name(record):
    recording = record(LIT + """
import gc
kymo.enable_torch_profiling()
def kept():
    lit = Lit()
    lit.training_step(torch.ones(1, 4))
    return lit.enc
enc = kept()
gc.collect()
Net()(torch.ones(1, 4))
enc(torch.ones(1, 4))
enc.append(nn.Tanh())
enc(torch.ones(1, 4))
""")
    assert recording.query("SELECT module, model, count(*) AS n FROM python.torch_trace WHERE starts_with(module, 'enc') "
                           "GROUP BY ALL ORDER BY module") == [
        {"module": "enc", "model": "Lit", "n": 3}, {"module": "enc.0", "model": "Lit", "n": 3},
        {"module": "enc.1", "model": "Lit", "n": 3}, {"module": "enc.2", "model": "Lit", "n": 1}]


def test_searches_for_owners_that_find_nothing_end(record):
    """A module for each call, beside a model of 10,000 modules: each search looks at all of them, so there is a limit."""
    recording = record(LIT + """
class Big(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Identity() for _ in range(10_000))
big = Big()
class Alone(nn.Module):
    def forward(self, x): return x
kymo.enable_torch_profiling()
lit = Lit()
lit.heads[0](torch.ones(1, 4))
for _ in range(200):
    Alone()(1)
lit.enc(torch.ones(1, 4))
""")
    assert counts(recording) == {("heads.0", "forward"): 1, ("Alone", "forward"): 200, ("Sequential", "forward"): 1,
                                 ("0", "forward"): 1, ("1", "forward"): 1}


def test_a_checkpoint_that_repeats_forward_is_said(record):
    recording = record(ON + """
from torch.utils.checkpoint import checkpoint
class Again(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    def forward(self, x):
        return checkpoint(self.part, x, use_reentrant=False)
Again()(torch.ones(1, 4, requires_grad=True)).sum().backward()
""")
    assert recording.query("SELECT module, recomputed FROM python.torch_trace WHERE stage = 'forward' AND "
                           "module LIKE 'part%' ORDER BY ts_ns") == [
        {"module": module, "recomputed": again} for again in [False, True] for module in ["part", "part.0", "part.1"]]


def test_a_forward_that_raises_has_a_row_and_its_exception(record):
    recording = record(ON + """
class Bad(nn.Module):
    def forward(self, x):
        raise KeyError("mine")
try:
    Bad()(1)
except KeyError as error:
    print(error)
net(torch.ones(1, 4))
""")
    assert recording.stdout == "'mine'\n"
    assert recording.query("SELECT module, depth, raised FROM python.torch_trace WHERE stage = 'forward' AND depth = 0 "
                           "ORDER BY ts_ns") == [{"module": "Bad", "depth": 0, "raised": True},
                                                 {"module": "Net", "depth": 0, "raised": False}]


def test_backward_of_a_forward_of_another_thread_finds_its_modules(record):
    recording = record(ON + """
import threading
made = []
thread = threading.Thread(target=lambda: made.append(net(torch.ones(1, 4)).sum()))
thread.start()
thread.join()
filler = threading.Thread(target=lambda: made.append(threading.get_ident()))  # the first one's number is not taken
made[0].backward()
""")
    assert recording.column("SELECT module FROM python.torch_trace WHERE stage = 'backward' ORDER BY seq") == [
        "head", "layers.1", "layers.0", "Net", "backward"]


# --- selection ------------------------------------------------------------------------------------------------

def test_selected_modules_only(record):
    assert counts(record(TRAIN, {"KYMO_TORCH_MODULES": "layers.*"})) == {
        ("layers.0", "forward"): 3, ("layers.0", "backward"): 3, ("layers.1", "forward"): 3,
        ("layers.1", "backward"): 3, ("SGD", "step"): 3}


def test_every_second_step_only_but_all_steps_are_counted(record):
    recording = record(TRAIN, {"KYMO_TORCH_EVERY": "2"})
    assert recording.column("SELECT DISTINCT step FROM python.torch_trace WHERE module = 'head' ORDER BY step") == [0, 2]
    assert recording.one("SELECT count(*) FROM trace.steps WHERE forward_ns > 0") == 3


def test_every_second_inference_only(record):
    recording = record(ON + "with torch.no_grad():\n    for _ in range(4):\n        net(torch.ones(1, 4))\n",
                       {"KYMO_TORCH_EVERY": "2"})
    assert recording.column("SELECT DISTINCT step FROM python.torch_trace ORDER BY step") == [0, 2]


# --- variables ------------------------------------------------------------------------------------------------

WATCH = {"KYMO_WATCH": "loss@train_step,rate@train,password@train,missing@train,net@train,batch@train"}
WATCHED = ON + """
def train():
    rate, password, batch = 0.5, "hunter2", torch.ones(2, 3)
    def inner():
        return rate  # a cell now
    for _ in range(2):
        print(train_step().item())
train()
"""


def test_watched_variables_are_read_at_each_step(record):
    recording = record(WATCHED, WATCH)
    rows = recording.query("SELECT step, func, name, value, type FROM python.variables ORDER BY step, name")
    losses = recording.stdout.split()
    assert [(r["step"], r["func"], r["name"], r["value"], r["type"]) for r in rows] == [
        row for step in range(2) for row in [
            (step, "train", "batch", "torch.Size([2, 3]) torch.float32 cpu", "Tensor"),
            (step, "train_step", "loss", losses[step], "Tensor"),
            (step, "train", "rate", "0.5", "float")]]
    assert "hunter2" not in str(recording.query("FROM python.variables"))
    assert "suggests a secret" in recording.one("SELECT text FROM trace.marks WHERE name = 'kymo.torch'")


def test_watching_runs_no_code_of_the_program_and_reads_no_device(record):
    recording = record(ON + """
class Loud:
    def __repr__(self):
        print("asked")
        return "?"
def train():
    loud, far = Loud(), torch.ones(1, device="meta")
    train_step()
train()
""", {"KYMO_WATCH": "loud@train,far@train"})
    assert recording.stdout == ""
    assert recording.query("SELECT name, value FROM python.variables ORDER BY name") == [
        {"name": "far", "value": "torch.Size([1]) torch.float32 meta"}, {"name": "loud", "value": "<Loud>"}]


# --- what is kept, and what is given back -----------------------------------------------------------------------

def test_no_tensor_and_no_module_lives_longer(record):
    said = record(ON + """
import gc, weakref
gc.disable()
import sys; c = sys.modules["kymo._torch"]
def step(net):
    out = net(torch.ones(3, 4))
    loss = out.sum()
    refs = [weakref.ref(x) for x in (out, loss)]
    loss.backward()
    optimizer.step()
    return refs
print([ref() is None for ref in step(net)])
one = Net()
step(one)
before = c.look()["modules"]
dead = [weakref.ref(module) for module in one.modules()]
del one
gc.collect()
print([ref() is None for ref in dead], before - c.look()["modules"])
""", {"KYMO_WATCH": "loss@step"})
    assert said.stdout == "[True, True]\n[True, True, True, True, True] 4\n"


def test_addresses_that_are_used_again_get_new_names(record):
    recording = record(ON + """
class A(nn.Module):
    def forward(self, x): return x
class B(nn.Module):
    def forward(self, x): return x
for _ in range(200):
    A()(1)
    B()(1)
""")
    assert counts(recording) == {("A", "forward"): 200, ("B", "forward"): 200}


def test_switched_off_nothing_is_left_behind(record):
    said = record(NET + """
import ctypes, sys
from kymo import _torch_auto
c = _torch_auto.extension()
method = type(torch.autograd.Variable._execution_engine).run_backward
class Method(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("call", ctypes.c_void_p)]
def entries():
    # PyMethodDescrObject: refcount, type; d_type, d_name, d_qualname; d_method
    d_method = ctypes.c_void_p.from_address(id(method) + 5 * 8).value
    function = bytes((ctypes.c_char * nn.Module.__call__.__sizeof__()).from_address(id(nn.Module.__call__)))
    return function[16:], Method.from_address(d_method).call
sys.setrecursionlimit(1000)
before = entries()
kymo.enable_torch_profiling()
train_step()
during = entries()
held = c.look()
kymo.disable_torch_profiling()
after = entries()
rows = c.look()["rows"]
train_step()
print(before != during, before == after, {k: held[k] for k in ("forward", "run_backward", "callbacks")},
      {k: c.look()[k] for k in ("forward", "run_backward", "callbacks")}, rows == c.look()["rows"])
""")
    assert said.stdout == ("True True {'forward': True, 'run_backward': True, 'callbacks': True} "
                           "{'forward': False, 'run_backward': False, 'callbacks': False} True\n")


def test_off_and_on_again_by_the_control_page_while_it_runs(record):
    recording = record(ON + """
import mmap, pathlib, struct
page = pathlib.Path(kymo.directory()) / "control"
def turn(on):
    with open(page, "r+b") as file, mmap.mmap(file.fileno(), 0) as map:
        word = struct.unpack_from("<I", map, 16)[0]
        struct.pack_into("<I", map, 16, word | 4 if on else word & ~4)
train_step()
turn(False)
for _ in range(5):
    train_step()
turn(True)
train_step()
""")
    assert counts(recording)["layers.0", "forward"] == 2
    assert counts(recording)["layers.0", "backward"] == 2


def test_kymo_config_selects_and_switches_while_it_runs(record):
    recording = record(ON + """
import os, subprocess
def config(*words):
    subprocess.run([os.environ["KYMO_BIN"], "config", str(os.getpid()), *words], check=True, stdout=subprocess.DEVNULL)
train_step()
config("torch_modules=head")
train_step()
config("torch=off")
train_step()
config("torch=on", "torch_modules=")
train_step()
""")
    assert recording.query("SELECT step, count(*) AS n FROM python.torch_trace WHERE stage <> 'step' GROUP BY step "
                           "ORDER BY step") == [{"step": 0, "n": 9}, {"step": 1, "n": 2}, {"step": 2, "n": 9}]
    assert recording.column("SELECT key || '=' || new FROM kymo.config WHERE key LIKE 'torch%' ORDER BY ts_ns") == [
        "torch=on", "torch_modules=head", "torch=off", "torch=on", "torch_modules="]


# --- versions of torch ---------------------------------------------------------------------------------------------

def test_an_unknown_build_is_tried_in_a_child_and_its_answer_is_kept(record, tmp_path):
    """The known build is made unknown; the program sees neither a child nor SIGCHLD."""
    code = NET + """
import os, signal, time
from kymo import _torch_auto
signal.signal(signal.SIGCHLD, lambda *args: print("SIGCHLD"))
c = _torch_auto.extension()
class Unknown:
    def __getattr__(self, name):
        return getattr(c, name)
    def known_callbacks(self):
        return False
_torch_auto.extension = Unknown
kymo.enable_torch_profiling()
train_step()  # while it is tried
for _ in range(1200):
    net(torch.ones(1, 4))
    if c.look()["callbacks"]:
        break
    time.sleep(0.1)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child")
train_step()
"""
    recording = record(code, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert recording.stdout == "no child\n"
    assert recording.column("SELECT step FROM python.torch_trace WHERE stage = 'step' ORDER BY step") == [0, 1]
    assert recording.one("SELECT count(*) FROM python.torch_trace WHERE module = 'head' AND stage = 'backward'") == 1
    assert "is an unknown build" in recording.one("SELECT text FROM trace.marks WHERE name = 'kymo.torch'")
    (answer,) = (tmp_path / "cache/kymo").iterdir()
    assert re.fullmatch(r"ok \d+( \d+){8}\n", answer.read_text())


FAILED = NET + """
from kymo import _torch_auto
c = _torch_auto.extension()
class Unknown:
    def __getattr__(self, name):
        return getattr(c, name)
    def known_callbacks(self):
        return False
    def build(self):
        return "feed", False
_torch_auto.extension = Unknown
(folder := __import__("pathlib").Path(__import__("os").environ["XDG_CACHE_HOME"]) / "kymo").mkdir(parents=True)
(folder / "torch-feed").write_text("no it ended with signal 11\\n")
"""


@pytest.fixture(scope="module")
def without_callbacks(record_once, tmp_path_factory):
    return record_once(FAILED + """
import time
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.ones(4)
attributes = {name: vars(torch.optim.SGD)[name] for name in vars(torch.optim.SGD)}
kymo.enable_torch_profiling()
for _ in torch.utils.data.DataLoader(Slow()):
    train_step()
print(attributes == dict(vars(torch.optim.SGD)), c.look()["scopes"], c.look()["callbacks"])
try:
    optimizer.step(lambda: 1 / 0)
except ZeroDivisionError:
    print("raised")
kymo.disable_torch_profiling()
train_step()
print(c.look()["scopes"])
""", {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))})


def test_a_build_that_failed_is_left_alone_and_that_is_said(without_callbacks):
    assert counts(without_callbacks) == {
        ("Net", "forward"): 2, ("layers.0", "forward"): 2, ("layers.1", "forward"): 2, ("head", "forward"): 2,
        ("backward", "backward"): 2, ("SGD", "step"): 3}
    assert without_callbacks.one("SELECT text FROM trace.marks WHERE name = 'kymo.torch'") == (
        f"backward of modules is not recorded: the test of torch {torch_version()} failed: it ended with signal 11")


def test_without_callbacks_steps_are_recorded_all_the_same(without_callbacks):
    """And no class is changed; what was borrowed is given back; a step that raises ends."""
    assert without_callbacks.stdout == "True True False\nraised\nFalse\n"
    assert without_callbacks.query("""
        SELECT step, name, data_ns >= 20e6 AS data, forward_ns > 0 AS forward, backward_ns > 0 AS backward,
               optimizer_ns > 0 AS optimizer FROM trace.steps WHERE step < 2 ORDER BY step""") == [
        {"step": step, "name": "step", "data": True, "forward": True, "backward": True, "optimizer": True}
        for step in range(2)]
    assert without_callbacks.query(
        "SELECT name, count(*) AS n FROM trace.zones WHERE source = 'torch' AND name LIKE '%.%e%' AND name NOT LIKE 'layers%' "
        "GROUP BY name ORDER BY name") == [
        {"name": "DataLoader.next", "n": 3}, {"name": "SGD.step", "n": 3}, {"name": "SGD.zero_grad", "n": 2}]


def torch_version():
    from importlib.metadata import version

    return version("torch")


# --- accelerators --------------------------------------------------------------------------------------------------

def test_memory_is_read_once_a_row_from_a_stand_in_for_cuda(record):
    """There is no GPU here: torch.cuda's four functions are stood in for, so this tests our side of them only."""
    recording = record(NET + """
calls = []
def stats(device):
    calls.append(device)
    return {"allocated_bytes": {"all": {"current": 3 << 20, "peak": 5 << 20}},
            "reserved_bytes": {"all": {"current": 8 << 20}}}
torch.version.cuda = "stand-in"
torch.cuda.is_initialized, torch.cuda.current_device = lambda: True, lambda: 1
torch.cuda.memory_stats_as_nested_dict = stats
kymo.enable_torch_profiling()
train_step()
print(len(calls))
""")
    assert recording.stdout == "10\n"
    assert recording.query("SELECT DISTINCT allocated, max_allocated, cached, device FROM python.torch_trace") == [
        {"allocated": 3.0, "max_allocated": 5.0, "cached": 8.0, "device": "cuda:1"}]
    assert recording.query("SELECT DISTINCT device, core, executions FROM device.models") == [
        {"device": "cuda:1", "core": 1, "executions": 1}]


# --- waiting for torch -----------------------------------------------------------------------------------------------

def test_arming_waits_for_torch_and_leaves_the_import_as_it_was(record):
    recording = record("""
import sys
before = list(sys.meta_path)
kymo.enable_torch_profiling()
import importlib.util
assert importlib.util.find_spec("torch") is not None  # a look is no import
import json.tool
assert "torch" not in sys.modules and not kymo.directory() is None
import torch
assert sys.meta_path == before, sys.meta_path
assert type(torch.__spec__.loader).__name__ == "SourceFileLoader" and "exec_module" not in vars(torch.__spec__.loader)
torch.nn.Linear(2, 2)(torch.ones(1, 2))
""")
    assert counts(recording) == {("Linear", "forward"): 1}
