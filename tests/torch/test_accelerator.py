"""Time on an accelerator. There is none here: torch.cuda's events, streams and questions are stood in for, so that this tests
kymo's side of them only. What is stood in for counts what is asked of it, and never says that it may be waited for."""
import pytest
from conftest import base

STAND_IN = """
import sys, time
import torch
from torch import nn
torch.set_num_threads(1)
class Device:
    busy = done = 0.0               # ms of work that were queued, and that are done
    capturing = touched = broken = False
    made = recorded = queried = asked = waited = 0
    def launch(self, ms):
        self.busy += ms
    def catch_up(self):
        self.done = self.busy
    def touch(self):
        self.touched = self.touched or self.capturing
device = Device()
class Stream:
    device_index, stream_id = 1, 7
class Event:
    def __init__(self, enable_timing=False):
        assert enable_timing
        device.made += 1
    def record(self, stream=None):
        device.touch()
        device.recorded += 1
        if device.broken:
            raise RuntimeError("CUDA error: the card is gone")
        self.at = device.busy
    def query(self):
        device.touch()
        device.queried += 1
        return device.done >= self.at
    def elapsed_time(self, end):
        device.touch()
        if not (device.done >= self.at and device.done >= end.at):
            raise RuntimeError("both events have to be done")
        return end.at - self.at
    def wait(self, stream=None):
        device.waited += 1
    synchronize = wait
def initialized():
    device.asked += 1
    return True
def wait(*args):
    device.waited += 1
torch.version.cuda = "stand-in"
torch.cuda.is_initialized, torch.cuda.current_device, torch.cuda.current_stream = initialized, lambda: 1, lambda: Stream
torch.cuda.memory_stats_as_nested_dict = lambda device: {
    "allocated_bytes": {"all": {"current": 0, "peak": 0}}, "reserved_bytes": {"all": {"current": 0}}}
torch.cuda.Event, torch.cuda.is_current_stream_capturing = Event, lambda: device.capturing
torch.cuda.synchronize = wait
"""

MODEL = STAND_IN + """
class Work(torch.autograd.Function):
    @staticmethod
    def forward(context, x, ms):
        context.ms = ms
        device.launch(ms)
        return x * 2
    @staticmethod
    def backward(context, gradient):
        device.launch(10 * context.ms)
        return gradient * 2, None
class Layer(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms
    def forward(self, x):
        return Work.apply(x, self.ms)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Layer(1), Layer(2)
        self.weight = nn.Parameter(torch.ones(2))
    def forward(self, x):
        device.launch(4)
        return self.two(self.one(x * self.weight))
class Own(torch.optim.SGD):
    def step(self, closure=None):
        device.launch(5)
        return super().step(closure)
net = Net()
optimizer = Own(net.parameters(), lr=0.01)
def train_step():
    loss = net(torch.ones(2)).sum()
    loss.backward()
    optimizer.step()
    return loss.item()
kymo.enable_torch_profiling()
"""
DEVICE = {"KYMO_DEVICE": "on"}
GAPS = "SELECT cause, sum(events) AS events FROM kymo.gaps GROUP BY 1 ORDER BY 1"


@pytest.fixture(scope="module")
def timed(record_once):
    return record_once(MODEL + """
for _ in range(3):
    print(train_step())
    device.catch_up()
print(device.waited, device.made, file=sys.stderr)
""", DEVICE)


def test_forward_backward_and_steps_have_their_time_on_the_device(timed):
    rows = timed.query("SELECT module, stage, min(device_ns) AS least, max(device_ns) AS most, count(*) AS n FROM python.torch_trace "
                       "GROUP BY ALL ORDER BY ALL")
    ms = {("Net", "forward"): 7, ("one", "forward"): 1, ("two", "forward"): 2, ("Net", "backward"): 30, ("one", "backward"): 10,
          ("two", "backward"): 20, ("backward", "backward"): 30, ("Own", "step"): 5}
    assert {(r["module"], r["stage"]): (r["least"] / 1e6, r["most"] / 1e6, r["n"]) for r in rows} == {
        key: (pytest.approx(value, rel=1e-3), pytest.approx(value, rel=1e-3), 3) for key, value in ms.items()}


def test_they_are_operations_of_the_stream_that_know_the_zone_of_the_host(timed):
    assert timed.query("SELECT name, kind, depth, zone, device, queue, model, count(*) AS n FROM device.ops GROUP BY ALL "
                       "ORDER BY ALL") == [
        {"name": name, "kind": kind, "depth": depth, "zone": zone, "device": "cuda:1", "queue": "stream 7", "model": model,
         "n": 3} for name, kind, depth, zone, model in [
            ("Net", "execution", None, "Net", "Net"), ("Net", "module", 1, "backward", "Net"), ("Own", "module", 0, "Own.step", None),
            ("backward", "module", 0, "backward", None), ("one", "module", 1, "one", "Net"), ("one", "module", 2, "backward", "Net"),
            ("two", "module", 1, "two", "Net"), ("two", "module", 2, "backward", "Net")]]
    assert timed.one("SELECT count(*) FROM device.ops o JOIN trace.zones z ON z.tid = o.tid AND z.name = o.zone AND "
                     "z.start_ns = o.zone_start_ns") == 24


def test_a_root_module_is_a_model_of_that_device_and_of_no_other(timed):
    rows = timed.query("SELECT model, device, executions, p50_ns FROM device.models")
    assert [(r["model"], r["device"], r["executions"], r["p50_ns"]) for r in rows] == [
        ("Net", "cuda:1", 3, pytest.approx(7e6, rel=1e-3))]


def test_nothing_waits_and_events_are_used_again(timed):
    waited, made = map(int, timed.stderr.split())
    assert waited == 0
    assert made <= 30  # 3 steps of 8 spans, each of two events, and one after each of 4 nodes
    assert timed.query(GAPS) == []


def test_what_the_program_says_is_the_same(timed, record):
    assert record(MODEL.replace("kymo.enable_torch_profiling()", "") + "for _ in range(3):\n    print(train_step())\n"
                  ).stdout == timed.stdout


def test_the_report_has_a_column_for_it_and_queues_are_not_said_to_be_busy(timed, home):
    report = base.run([base.KYMO, "report", timed.path], {**home, "COLUMNS": "100", "LC_ALL": "C.UTF-8"}, timed.path).stdout
    table = report[report.index("Torch modules"):].split("\n\n")[0].splitlines()
    assert table[1].split()[-3:] == ["forward", "backward", "device"]
    (net,) = [line for line in table if " Net " in line]
    assert net.endswith(" 37.0 ms")
    assert timed.query("FROM device.queues") == []


@pytest.fixture(scope="module")
def captured(record_once):
    """Four steps: of the second a graph is captured, and the last one has not passed when the program ends."""
    return record_once(MODEL + """
train_step()
device.catch_up()
device.capturing = True
train_step()
device.capturing = False
train_step()
device.catch_up()
train_step()
print(device.touched)
""", DEVICE)


def test_a_graph_that_is_captured_is_not_touched(captured):
    assert captured.stdout == "False\n"
    assert captured.query("SELECT step, count(device_ns) AS known, count(*) AS n FROM python.torch_trace GROUP BY 1 ORDER BY 1") == [
        {"step": 0, "known": 8, "n": 8}, {"step": 1, "known": 0, "n": 8}, {"step": 2, "known": 8, "n": 8},
        {"step": 3, "known": 0, "n": 8}]


def test_what_has_not_passed_at_the_end_is_dropped_and_counted(captured):
    gaps = {row["cause"]: row["events"] for row in captured.query(GAPS)}
    assert gaps.keys() == {"device time of modules: a graph was being captured",
                           "device time of modules: not known when the program ended"}
    assert gaps["device time of modules: not known when the program ended"] == 8


def test_events_that_fail_are_counted_then_left_alone_and_the_program_goes_on(record):
    recording = record(MODEL + """
train_step()
device.catch_up()
device.broken = True
losses = [train_step() for _ in range(4)]
recorded, queried, asked = device.recorded, device.queried, device.asked
train_step()
print(len(losses), recorded == device.recorded, queried == device.queried)
""", DEVICE)
    assert recording.stdout == "4 True True\n"
    assert recording.query(GAPS) == [{"cause": "device time of modules: an event of torch's failed", "events": 8}]
    assert recording.one("SELECT text FROM trace.marks WHERE name = 'kymo.torch'") == (
        "device times of modules are no longer recorded: torch.cuda failed: CUDA error: the card is gone")
    assert recording.one("SELECT count(*) FROM python.torch_trace") == 48


@pytest.mark.parametrize("why, code, env", [
    ("devices are not recorded", "", {}),
    ("the program has not used it", "torch.cuda.is_initialized = lambda: False\n", DEVICE)])
def test_nothing_is_asked_of_it_where(record, why, code, env):
    recording = record(MODEL.replace("kymo.enable", code + "kymo.enable") + "train_step()\nprint(device.made, device.recorded)\n", env)
    assert recording.stdout == "0 0\n"
    assert recording.query("SELECT count(*) AS n, count(device_ns) AS known FROM python.torch_trace") == [{"n": 8, "known": 0}]


REAL = """
class RealEvent(Event):
    def record(self, stream=None):
        self.at = max(time.monotonic_ns(), Device.free)
        moments.append(self.at)
    def query(self):
        return time.monotonic_ns() >= self.at
    def elapsed_time(self, end):
        return (end.at - self.at) / 1e6
Device.free, moments = 0, []
torch.cuda.Event = RealEvent
class Sleepy(nn.Module):
    def forward(self, x):
        Device.free = max(time.monotonic_ns(), Device.free) + 2_000_000
        return x
"""


def test_moments_are_right_within_the_error_that_is_stated(record):
    """A device that takes 2 ms for each of ten: half of them are queued while it is busy, half after it was idle."""
    recording = record(STAND_IN + REAL + """
net = Sleepy()
kymo.enable_torch_profiling()
for i in range(10):
    net(1)
    time.sleep(0.01 if i >= 5 else 0)
time.sleep(0.05)
net(1)
before = time.monotonic_ns()
kymo.mark("now")
print(before, time.monotonic_ns(), *moments)
""", DEVICE)
    before, after, *moments = map(int, recording.stdout.split())
    at = recording.one("SELECT ts_ns FROM trace.marks WHERE name = 'now'")
    rows = recording.query("SELECT start_ns, end_ns, error_ns, queued_ns FROM device.ops ORDER BY queued_ns LIMIT 10")
    assert len(rows) == 10
    for row, begin, end in zip(rows, moments[::2], moments[1::2]):
        assert abs(row["end_ns"] - row["start_ns"] - (end - begin)) <= 20000, (row, begin, end)
        least, most = begin - after + at - row["error_ns"], begin - before + at + row["error_ns"]
        assert least - 20000 <= row["start_ns"] <= most + 20000, (row, least, most)  # as well as ticks are known as ns
        assert row["start_ns"] >= row["queued_ns"] - 20000
