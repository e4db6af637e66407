"""Operators of PyTorch in torch.ops and their FLOPs in torch.flops: kymo run --torch-ops."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

KYMO = pathlib.Path(__file__).parents[2] / "build/kymo"
ALL = {"KYMO_TORCH_OPS": "all"}

# Each model runs under torch's own counter, then recorded; both start from the same weights. torch 2.13 has no formula for the
# attention of CPUs: it is given that of the other kinds.
MODELS = """
import json
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import flop_counter
aten = torch.ops.aten
MORE = {aten._scaled_dot_product_flash_attention_for_cpu: flop_counter.sdpa_flop_count,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: flop_counter.sdpa_backward_flop_count}
MORE = {op: (lambda formula, count: lambda *a, out_shape=None, **k: formula(*a[:count]))(formula, count)
        for (op, formula), count in zip(MORE.items(), (3, 4))}
torch.set_num_threads(1)
torch.manual_seed(0)

class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 5, stride=2, padding=(1, 2), dilation=2)
        self.grouped = nn.Conv2d(8, 8, 3, groups=4, padding="same", bias=False)
        self.up = nn.ConvTranspose2d(8, 6, 3, stride=2, output_padding=1)
        self.line = nn.Conv1d(6, 4, 3)
        self.head = nn.Linear(4, 5)
    def forward(self, x):
        return self.head(self.line(self.up(self.grouped(self.stem(x)).relu()).mean(2)).mean(2))

class Attention(nn.Module):
    def __init__(self, backend):
        super().__init__()
        self.backend, self.qkv = backend, nn.Linear(16, 24 + 24)
    def forward(self, x):
        q, k, v = self.qkv(x).view(2, 10, 3, 4, 4).permute(2, 0, 3, 1, 4)
        with sdpa_kernel(self.backend):
            return F.scaled_dot_product_attention(q, k[:, :, :7], v[:, :, :7])

class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)
    def forward(self, x):
        return torch.einsum("bti,btj->bij", self.head(self.encoder(x)), x)

CASES = {
    "Cnn": lambda: (Cnn(), torch.ones(2, 3, 20, 22)),
    "Transformer": lambda: (Transformer(), torch.ones(3, 6, 16)),
    "Math": lambda: (Attention(SDPBackend.MATH), torch.ones(2, 10, 16)),
    "Flash": lambda: (Attention(SDPBackend.FLASH_ATTENTION), torch.ones(2, 10, 16)),
}
counted = {}
for name, make in CASES.items():
    net, x = make()
    net.__class__.__name__ = name
    with flop_counter.FlopCounterMode(display=False, custom_mapping=MORE) as forward:
        loss = net(x).sum()
    with flop_counter.FlopCounterMode(display=False, custom_mapping=MORE) as backward:
        loss.backward()
    kymo.enable_torch_profiling()
    net(x).sum().backward()
    kymo.disable_torch_profiling()
    modules = {".".join(module.split(".")[1:]) or name: sum(ops.values()) for module, ops in forward.get_flop_counts().items()
               if module != "Global"}
    counted[name] = [forward.get_total_flops(), backward.get_total_flops(), modules]
print(json.dumps(counted))
"""


@pytest.fixture(scope="module")
def models(record_once):
    recording = record_once(MODELS, ALL)
    return recording, json.loads(recording.stdout)


@pytest.mark.parametrize("name", ["Cnn", "Transformer", "Math", "Flash"])
def test_flops_equal_those_of_torchs_own_counter_forward_and_backward(models, name):
    recording, counted = models
    got = {row["stage"]: row["flops"] for row in recording.query(
        f"SELECT stage, flops FROM torch.flops WHERE module = '{name}'")}
    forward, backward, _ = counted[name]
    assert forward > 0 and backward > forward
    assert got == {"forward": forward, "backward": backward}


@pytest.mark.parametrize("name", ["Cnn", "Transformer"])
def test_flops_of_each_module_equal_those_of_torchs_own_counter(models, name):
    recording, counted = models
    got = {row["module"]: row["flops"] for row in recording.query(
        f"SELECT module, flops FROM torch.flops WHERE model = '{name}' AND stage = 'forward' AND flops > 0")}
    want = {module: flops for module, flops in counted[name][2].items() if flops}
    assert len(want) >= 5
    assert got == want


TRAIN = """
import torch
from torch import nn
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def train_step():
    optimizer.zero_grad()
    net(torch.ones(2, 8)).sum().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def trained(record_once):
    return record_once(TRAIN + """
import kymo._torch as c
kymo.enable_torch_profiling()
on = []
for _ in range(7):
    train_step()
    on.append(c.look()["operators_on"])
kymo.disable_torch_profiling()
print(on, c.look()["operators_on"])
""", {"KYMO_TORCH_OPS": "3", "KYMO_PEAK_FLOPS": "2e9"})


def test_operators_are_recorded_in_whole_steps_one_of_so_many(trained):
    """The second of three; between them the callback is disabled."""
    assert trained.stdout == "[True, False, False, True, False, False, True] False\n"
    assert trained.column("SELECT DISTINCT step FROM torch.ops ORDER BY step") == [1, 4]
    assert trained.query("SELECT step, count(*) AS n FROM torch.ops WHERE name = 'aten::addmm' GROUP BY step ORDER BY step") == [
        {"step": 1, "n": 2}, {"step": 4, "n": 2}]


def test_an_operator_has_its_module_stage_shapes_types_and_flops(trained):
    rows = trained.query("""
        SELECT name, module, stage, shapes, dtypes, flops, flops_per_s > 0 AS rate, depth
        FROM torch.ops WHERE step = 1 AND flops IS NOT NULL ORDER BY start_ns""")
    kinds = {"dtypes": "float32 float32", "rate": True, "depth": 1}
    assert rows == [
        {"name": "aten::addmm", "module": "0", "stage": "forward", "shapes": "[16] [2,8] [8,16]", "flops": 512, **kinds,
         "dtypes": "float32 float32 float32"},
        {"name": "aten::addmm", "module": "2", "stage": "forward", "shapes": "[4] [2,16] [16,4]", "flops": 256, **kinds,
         "dtypes": "float32 float32 float32"},
        {"name": "aten::mm", "module": "2", "stage": "backward", "shapes": "[2,4] [4,16]", "flops": 256, **kinds},
        {"name": "aten::mm", "module": "2", "stage": "backward", "shapes": "[4,2] [2,16]", "flops": 256, **kinds},
        {"name": "aten::mm", "module": "0", "stage": "backward", "shapes": "[16,2] [2,8]", "flops": 512, **kinds},
    ]


def test_a_node_of_backward_has_the_number_of_its_forward(trained):
    assert trained.query("""
        SELECT f.name, f.module, b.name AS node, b.module = f.module AS same
        FROM torch.ops f JOIN torch.ops b ON b.sequence = f.sequence AND b.step = f.step
        WHERE f.step = 1 AND f.name = 'aten::addmm' AND b.stage = 'backward' ORDER BY f.start_ns""") == [
        {"name": "aten::addmm", "module": "0", "node": "AddmmBackward0", "same": True},
        {"name": "aten::addmm", "module": "2", "node": "AddmmBackward0", "same": True}]


def test_operators_are_zones_inside_the_zones_of_their_modules(trained):
    assert trained.one("SELECT count(*) FROM torch.ops") == trained.one("SELECT count(*) FROM trace.zones WHERE source = 'op'")
    assert trained.one("""
        SELECT count(*) FROM trace.zones o JOIN trace.zones m ON m.tid = o.tid AND m.name = '2' AND m.source = 'torch'
            AND o.start_ns BETWEEN m.start_ns AND m.start_ns + m.duration_ns AND o.depth > m.depth
            AND o.start_ns + o.duration_ns <= m.start_ns + m.duration_ns
        WHERE o.name = 'aten::addmm' AND o.step = m.step""") == 2
    assert trained.one("SELECT cost_ns_per_event > 0 FROM kymo.overhead WHERE source = 'op'")


def test_utilisation_is_flops_by_time_and_the_given_peak(trained):
    assert trained.query("""
        SELECT module, stage, steps, flops, self_flops, peak, peak_origin,
               abs(flops_per_s - flops * 1e9 / duration_ns) < 1 AS rate, abs(mfu - flops_per_s / 2e9) < 1e-6 AS mfu
        FROM torch.flops WHERE module = 'Sequential' ORDER BY stage""") == [
        {"module": "Sequential", "stage": stage, "steps": 2, "flops": flops, "self_flops": 0, "peak": 2e9,
         "peak_origin": "given", "rate": True, "mfu": True} for stage, flops in (("backward", 2048), ("forward", 1536))]


def test_the_peak_of_a_known_gpu_is_taken_for_the_type_that_is_used(record):
    """The model's name has another known one in it."""
    recording = record("""
import kymo._torch_auto
kymo._torch_auto._gpu_name = lambda: "NVIDIA L40S"
""" + TRAIN + """
torch.version.cuda = "13.0"
kymo.enable_torch_profiling()
train_step(); train_step()
""", {"KYMO_TORCH_OPS": "1"})
    assert recording.query("SELECT device, dtype, flops_per_s, origin FROM torch.peaks ORDER BY dtype") == [
        {"device": "NVIDIA L40S", "dtype": dtype, "flops_per_s": flops, "origin": "known"}
        for dtype, flops in (("bfloat16", 362e12), ("float16", 362e12), ("float32", 91.6e12))]
    assert recording.query("SELECT DISTINCT peak, peak_origin FROM torch.flops WHERE flops > 0") == [
        {"peak": 91.6e12, "peak_origin": "known"}]


def test_the_peak_of_this_cpu_is_measured_on_request(record):
    recording = record(TRAIN + """
import time
start = time.monotonic()
kymo.enable_torch_profiling()
print(time.monotonic() - start)
train_step(); train_step()
""", {"KYMO_TORCH_OPS": "1", "KYMO_PEAK_FLOPS": "measure"})
    peaks = recording.query("SELECT device, dtype, flops_per_s > 1e6 AS positive, origin FROM torch.peaks ORDER BY dtype")
    if not peaks and float(recording.stdout) > 59:
        pytest.skip("the machine is too busy to measure within a minute")
    assert peaks == [{"device": "cpu", "dtype": dtype, "positive": True, "origin": "measured"} for dtype in ("bfloat16", "float32")]
    assert recording.one("""SELECT bool_and(f.peak = p.flops_per_s AND f.peak_origin = 'measured' AND f.mfu > 0)
        FROM torch.flops f, torch.peaks p WHERE p.dtype = 'float32' AND f.flops > 0""") is True


def test_without_the_option_there_are_no_operators_and_no_sentence(record):
    recording = record(TRAIN + "kymo.enable_torch_profiling()\ntrain_step(); train_step()\n")
    assert recording.one("SELECT count(*) FROM torch.ops") == 0
    assert recording.query("FROM torch.flops") == []
    assert recording.one("SELECT count(*) FROM trace.marks WHERE name = 'kymo.torch'") == 0


def test_a_running_program_records_them_on_request(record):
    recording = record(TRAIN + """
import os, subprocess
kymo.enable_torch_profiling()
train_step()
subprocess.run([os.environ["KYMO_BIN"], "config", str(os.getpid()), "torch_ops=all"], check=True)
train_step(); train_step()
subprocess.run([os.environ["KYMO_BIN"], "config", str(os.getpid()), "torch_ops=off"], check=True)
train_step(); train_step()
""")
    assert recording.query("SELECT step, count(*) AS n FROM torch.ops WHERE name = 'aten::addmm' GROUP BY step ORDER BY step") == [
        {"step": 1, "n": 2}, {"step": 2, "n": 2}]


def test_tensors_of_a_class_of_the_program_are_read_without_calling_it(record):
    recording = record("""
import torch
calls = []
class Own(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, dispatch_sizes_strides_policy="sizes")
        made.inner = inner
        return made
    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        calls.append(str(function))
        args = [arg.inner if isinstance(arg, Own) else arg for arg in args]
        return function(*args, **(kwargs or {}))
own = Own(torch.ones(3, 5))
def act():
    calls.clear()
    torch.mm(own, torch.ones(5, 2))
    return list(calls)
without = act()
kymo.enable_torch_profiling()
torch.nn.Identity()(torch.ones(1))
print(act() == without)
kymo.disable_torch_profiling()
""", ALL)
    assert recording.stdout == "True\n"
    assert recording.column("SELECT DISTINCT flops FROM torch.ops WHERE name = 'aten::mm' AND flops IS NOT NULL") == [60]


def test_inputs_that_are_elsewhere_are_refused_with_a_sentence(record):
    """As if this build had them at another place."""
    recording = record(TRAIN + """
from kymo import _torch_auto
def wrong(torch):
    x = torch.empty(4)
    def act():
        for _ in range(4):
            x.as_strided((2,), (1,), 0)
    return act, act
_torch_auto.known_operators = wrong
kymo.enable_torch_profiling()
train_step(); train_step()
""", ALL)
    assert re.fullmatch(r"operators are not recorded: torch \S+: the inputs of an operator are not where they are expected",
                        recording.one("SELECT text FROM trace.marks WHERE name = 'kymo.torch'"))
    assert recording.one("SELECT count(*) FROM torch.ops") == 0
    assert recording.one("SELECT count(*) FROM python.torch_trace") > 0


def test_operators_that_raise_and_ones_of_other_threads_are_recorded(record):
    recording = record("""
import threading, torch
kymo.enable_torch_profiling()
torch.nn.Identity()(torch.ones(1))
def work():
    for _ in range(3):
        try:
            torch.mm(torch.ones(2, 3), torch.ones(2, 3))
        except RuntimeError:
            pass
        torch.mm(torch.ones(2, 3), torch.ones(3, 4))
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
kymo.disable_torch_profiling()
""", ALL)
    assert recording.query("SELECT flops, depth, count(*) AS n, count(DISTINCT tid) AS threads FROM torch.ops "
                           "WHERE name = 'aten::mm' AND shapes = '[2,3] [3,4]' GROUP BY ALL") == [
        {"flops": 48, "depth": 0, "n": 9, "threads": 3}]
    assert recording.one("SELECT count(*) FROM torch.ops WHERE shapes = '[2,3] [2,3]' AND name = 'aten::mm'") == 9


@pytest.mark.skipif(not shutil.which("c++"), reason="torch.compile needs a C++ compiler")
def test_a_compiled_region_is_an_operator_with_its_kernels_inside(record):
    recording = record("""
import os
os.environ["KYMO"] = "off"  # for torch's own child processes
import torch
from torch import nn
torch.set_num_threads(1)
net = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)))
x = torch.ones(16, 64)
with torch.no_grad():
    net(x)
kymo.enable_torch_profiling()
with torch.no_grad():
    net(x)
kymo.disable_torch_profiling()
""", ALL)
    assert recording.query("""
        SELECT r.name LIKE '%ompiled%' AS region, count(*) AS n, sum(o.flops) AS flops
        FROM torch.ops r JOIN torch.ops o ON o.depth > r.depth AND o.tid = r.tid
            AND o.start_ns BETWEEN r.start_ns AND r.start_ns + r.duration_ns
        WHERE r.depth = 0 AND o.flops IS NOT NULL GROUP BY r.name""") == [
        {"region": True, "n": 2, "flops": 2 * 16 * 64 * (64 + 8)}]


def test_the_report_has_flops_by_step_and_module(trained):
    done = subprocess.run([os.environ.get("KYMO_BIN", KYMO), "report", trained.path], capture_output=True, text=True, check=True)
    section = done.stdout.split("Operators\n", 1)[1].split("\n\n", 1)[0]
    assert "operators and 1.79 kFLOP a step" in section
    assert "of the peak (given, 2.00 GFLOP/s); 2 recorded" in section
    assert [(line.split()[0], line.split()[-1]) for line in section.splitlines()[2:]] == [("1.02", "0"), ("768", "2")]
