"""What device.queues, gaps and models make of operations at times that are known."""
import json
import re
import sys

import pytest
from conftest import KYMO, ROOT


@pytest.fixture(scope="module")
def told(lab):
    done, recording = lab.record("gaps", lab.program("gaps"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return recording


def ms(column):
    """Times are ticks of the clock, whose rate is known to a thousandth."""
    return f"round({column} / 1e6, 1)"


def test_a_gap_has_a_cause(lab, told):
    assert lab.rows(told, f"SELECT queue, cause, {ms('duration_ns')} FROM device.gaps ORDER BY queue, start_ns") == [
        ("copies", "launch", 67), ("late", "dependency", 29), ("late", "launch", 10), ("queue 0", "launch", 1),
        ("queue 0", "dependency", 3), ("queue 0", "synchronisation", 5),
        ("queue 0", "host late", 7), ("queue 0", "host late", 11)]


def test_busy_idle_overlap_and_causes_add_up(lab, told):
    columns = ", ".join(ms(c) for c in ("busy_ns", "idle_ns", "host_late_ns", "sync_ns", "dependency_ns", "launch_ns"))
    assert lab.rows(told, f"SELECT queue, core, ops, gaps, {columns} FROM device.queues ORDER BY core") == [
        ("queue 0", 0, 7, 5, 53, 47, 18, 5, 3, 1), ("copies", 1, 2, 1, 28, 72, 0, 0, 0, 67), ("late", 2, 3, 2, 4, 96, 0, 0, 29, 10)]
    assert lab.rows(told, "SELECT round(utilisation, 3), round(overlap, 3) FROM device.queues ORDER BY core") == [
        (0.53, 0.189), (0.28, 0.357), (0.04, 0)]  # 10 of 53 and of 28


def test_a_models_executions_are_those_that_were_told_not_its_kernels(lab, told):
    assert lab.rows(told, f"SELECT model, device, core, executions, {ms('p50_ns')}, {ms('p99_ns')}, {ms('total_ns')} "
                    "FROM device.models") == [("net", "card", 0, 2, 35, 40, 75)]


def test_the_first_execution_of_a_model_is_told_apart(lab, told):
    assert lab.rows(told, f"SELECT executions, {ms('p99_ns')}, {ms('first_run_ns')}, {ms('warm_p99_ns')} FROM device.models") == [
        (2, 40, 40, 35)]


def test_the_report_says_why_a_device_stood_still(lab, told):
    done = lab.plain(KYMO, "report", told)
    assert done.returncode == 0, done.stderr
    section = done.stdout.split("\nDevices\n")[1].split("\n\n")[0].splitlines()
    assert section[0].split() == ["queue", "busy", "%", "used", "ops", "|", "late", "sync", "depends", "launch"]
    assert section[1].split()[:2] == ["queue", "0"] and " 53.0 " in section[1]
    assert section[4].split() == ["model,", "latency", "core", "runs", "first", "p50", "warm", "p99", "total"]
    assert section[5].split()[:3] == ["net", "0", "2"]


def test_the_summary_has_queues_and_models(lab):
    done = lab.plain(KYMO, "run", "--force", "-o", lab.folder / "run-summed", "--device", "--", lab.program("gaps"))
    assert done.returncode == 0 and all(len(line) <= 80 for line in done.stderr.splitlines()[1:]), done.stderr
    rounded = re.sub(r"([\d.]+) ms", lambda found: f"{float(found[1]):.0f} ms", done.stderr)
    at = next(i for i, line in enumerate(rounded.splitlines()) if line.startswith("  device: "))
    assert rounded.splitlines()[at:at + 2] == [
        "  device: queue 0 busy 53 ms (53 %), 7 ops, longest 10 ms (kernel); 2 more",
        "  model: net 2 runs, first 40 ms, p50 35 ms, warm p99 35 ms"]
    assert len(done.stderr.splitlines()) <= 24


def test_a_program_without_a_device_has_no_queues_in_its_summary(lab):
    done = lab.plain(KYMO, "run", "--force", "-o", lab.folder / "run-plain", "--device", "--", "sleep", "0")
    assert done.returncode == 0 and "device: " not in done.stderr and "model: " not in done.stderr


def test_a_packed_file_answers_the_same(lab, told):
    packed = lab.folder / "gaps.kymo"
    done = lab.plain(KYMO, "pack", "--force", told, packed)
    assert done.returncode == 0, done.stderr
    sql = f"SELECT queue, {ms('busy_ns')}, {ms('sync_ns')}, round(overlap, 3) FROM device.queues ORDER BY core"
    assert lab.rows(packed, sql) == lab.rows(told, sql)


TORCH = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    def forward(self, x):
        return self.two(self.one(x))
net, other = Net(), torch.nn.Linear(8, 8)
for i in range(5):
    net(torch.ones(2, 8))
other(torch.ones(2, 8))
"""


def test_a_root_module_of_torch_is_a_model_and_its_forward_an_execution(lab):
    pytest.importorskip("torch")
    program = lab.folder / "net.py"
    program.write_text(TORCH)
    done, recording = lab.record("torch", sys.executable, program, options=("--torch",))
    assert done.returncode == 0, done.stderr
    assert lab.rows(recording, "SELECT model, device, core, executions FROM device.models ORDER BY 1") == [
        ("Linear", "cpu", 0, 1), ("Net", "cpu", 0, 5)]


LAUNCHES = """
import ctypes, torch
lib = ctypes.CDLL("libkymo.so.0")
lib.kymo_fake_open.restype, lib.kymo_fake_enqueue.restype = ctypes.c_void_p, ctypes.c_uint64
card = ctypes.c_void_p(lib.kymo_fake_open(None))
def launch(name, ms):
    lib.kymo_fake_enqueue(card, 0, 0, name, 0, ctypes.c_uint64(0), ctypes.c_uint64(ms * 1000000))
class Work(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        launch(b"mul", 1)
        return x * 2
    @staticmethod
    def backward(context, gradient):
        launch(b"mul_backward", 2)
        return gradient * 2
class Layer(torch.nn.Module):
    def forward(self, x):
        return Work.apply(x)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Layer(), Layer()
    def forward(self, x):
        launch(b"own", 4)
        return self.two(self.one(x))
net, x = Net(), torch.ones(2, requires_grad=True)
launch(b"outside", 8)
for i in range(3):
    net(x).sum().backward()
"""


@pytest.fixture(scope="module")
def launched(lab):
    pytest.importorskip("torch")
    pytest.importorskip("kymo")
    program = lab.folder / "launches.py"
    program.write_text(LAUNCHES)
    done, recording = lab.record("launches", sys.executable, program, options=("--device", "--torch"))
    assert done.returncode == 0, done.stderr
    return recording


def test_an_operation_belongs_to_the_module_that_queued_it(lab, launched):
    assert lab.rows(launched, "SELECT name, zone, count(*) FROM device.ops GROUP BY ALL ORDER BY ALL") == [
        ("mul", "one", 3), ("mul", "two", 3), ("mul_backward", "backward", 6), ("outside", None, 1), ("own", "Net", 3)]
    assert lab.rows(launched, "SELECT count(*) FROM device.ops o JOIN trace.zones z ON z.tid = o.tid AND z.start_ns = o.zone_start_ns "
                    "AND z.name = o.zone") == [(15,)]


def test_modules_have_device_time_by_the_query_of_the_docs(lab, launched):
    blocks = [block.split("```")[0] for block in (ROOT / "docs/devices.md").read_text().split("```sql\n")[1:]]
    sql = next(block for block in blocks if "python.torch_trace" in block)
    found = {(module, stage): (ops, round(ns / 1e6, 1)) for module, stage, ops, ns in lab.rows(launched, sql)}
    assert found == {
        ("Net", "forward"): (9, 18), ("one", "forward"): (3, 3), ("two", "forward"): (3, 3), ("Net", "backward"): (6, 12),
        ("one", "backward"): (3, 6), ("two", "backward"): (3, 6), ("backward", "backward"): (6, 12)}


@pytest.mark.parametrize("how, verdict", [("idle", "device_idle"), ("unused", "device_unused"), ("sync", "device_sync"),
                                          ("tiny", "device_tiny"), ("bound", "device_bound"), ("busy", None)])
def test_a_device_that_is_held_up_is_said_to_be_and_no_other(lab, how, verdict):
    done, recording = lab.record(f"held-{how}", lab.program("held_up"), how)
    assert done.returncode == 0, done.stderr
    report = lab.plain(KYMO, "report", "-f", "json", recording)
    found = [one["name"] for one in json.loads(report.stdout)["verdicts"] if one["name"].startswith("device_")]
    assert found == ([verdict] if verdict else [])


def test_a_device_that_is_the_bottleneck_is_told_with_the_queue_and_the_kernel(lab):
    done, recording = lab.record("bound", lab.program("held_up"), "bound")
    assert done.returncode == 0, done.stderr
    report = json.loads(lab.plain(KYMO, "report", "-f", "json", recording).stdout)
    told = next(one for one in report["verdicts"] if one["name"] == "device_bound")
    assert re.fullmatch(
        r"The device is the bottleneck: queue 0 was busy for (100|> 99) % of the time the device was in use "
        r"\((599|60.) ms of (599|60.) ms\), mostly with matmul, and the host waited for it\.", told["sentence"])
    assert lab.query(recording, told["sql"])[0]["name"] == "matmul"
