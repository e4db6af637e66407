"""What kymo report and the summary say of a training without a mark of its own but batch_size."""
import json
import os
import re
import subprocess
import sys

import pytest
from conftest import base

PROGRAM = """
import time
import kymo, torch
from torch import nn
torch.set_num_threads(1)
class Slow(nn.Linear):
    def forward(self, x):
        time.sleep(0.4 if steps == 9 else 0.002)
        return super().forward(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.middle = nn.Linear(4, 4), nn.Sequential(nn.ReLU(), Slow(4, 4))
        self.parts = nn.ModuleList([nn.Linear(4, 4)])
    def forward(self, x):
        return self.middle(self.parts[0](self.first(x)))
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 20
    def __getitem__(self, i):
        time.sleep(0.8 if i == 5 else 0.002)
        return torch.ones(4)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
steps = 0
for batch in torch.utils.data.DataLoader(Data()):
    optimizer.zero_grad()
    net(batch).sum().backward()
    optimizer.step()
    kymo.record("batch_size", 100)
    steps += 1
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """(the summary, the environment, the folder that out is in)."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "live").mkdir(mode=0o700)
    (folder / "train.py").write_text(PROGRAM)
    env = {**base.without_kymo(os.environ), "KYMO_DIR": str(folder / "live"), "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([base.KYMO, "run", "-o", "out", "--torch", "--", sys.executable, "train.py"], env=env, cwd=folder,
                          capture_output=True, text=True, check=False, timeout=base.SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stderr, env, folder


@pytest.fixture(scope="module")
def said(recorded):
    """(the summary, the report), both in 80 columns."""
    summary, env, folder = recorded
    return summary, base.run([base.KYMO, "report", "out"], env, folder).stdout


def test_nothing_is_wider_than_80_columns(said):
    summary, report = said
    assert [line for line in (summary + report).splitlines() if len(line) > 80 and "ended with" not in line] == []
    assert len(summary.splitlines()) <= 24


def test_samples_per_second_and_the_spread_of_steps_are_said(said):
    for text in said:
        (rate, samples), = re.findall(r"  20 steps   median \S+ \S+   p99 \S+ \S+   ([\d.]+) steps/s   ([\d,]+) samples/s", text)
        assert abs(float(samples.replace(",", "")) / float(rate) - 100) < 5
        assert re.search(r"  step time  .+   \S+ \S+ to \S+ m?s", text)


def test_the_summary_says_where_a_step_goes(said):
    (line,) = [line for line in said[0].splitlines() if line.startswith("  phases: ")]
    shares = dict(re.findall(r"(data|forward|backward|optimizer|other) (\d+) %", line))
    assert set(shares) == {"data", "forward", "backward", "optimizer", "other"}
    assert int(shares["data"]) > int(shares["forward"]) > int(shares["optimizer"])  # 0.84 s, 0.44 s, next to nothing
    assert 97 <= sum(map(int, shares.values())) <= 103


def test_modules_have_forward_and_backward_beside_each_other_by_self_time(said):
    report = said[1]
    table = report[report.index("Torch modules"):].split("\n\n")[0].splitlines()
    assert table[1].split() == ["self", "%", "mod.", "torch", "module,", "per", "call", "calls", "forward", "backward"]
    assert re.fullmatch(r"  \S+ m?s +\d+\.\d  middle\.1 \(Slow\) +20 +\S+ ms +\S+ [mµ]s", table[2])  # the slow one is first


def test_the_page_has_the_self_time_of_the_table_also_around_a_list_of_modules(recorded):
    _, env, folder = recorded
    base.run([base.KYMO, "report", "out", "report.html"], env, folder)
    block = re.search(r'id="kymo-data">(.*?)</script>', (folder / "report.html").read_text(), re.S)[1]
    shown = {row["module"]: round(row["self_ns"]) for row in json.loads(block)["modules"]}
    sql = "SELECT module, round(sum(self) * 1e9)::BIGINT AS ns FROM python.torch_trace GROUP BY 1"
    asked = base.run([base.KYMO, "query", "out", "-f", "json", sql], env, folder).stdout
    assert shown == {row["module"]: row["ns"] for row in json.loads(asked)}
    assert {"Net", "parts.0", "middle.1"} <= set(shown)


def test_slow_steps_are_named_with_what_was_different(said):
    report = said[1]
    slow = report[report.index("Slowest steps"):].split("\n\n")[0].splitlines()[1:]
    assert re.fullmatch(r"  5 .* data \+\S+ m?s: DataLoader\.next( \S+ m?s)?", slow[0]), slow
    assert re.fullmatch(r"  9 .* forward \+\S+ m?s: middle\.1( \S+ m?s)?", slow[1]), slow


SERVER = """
import asyncio, time
import torch
from torch import nn
torch.set_num_threads(1)
class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    def forward(self, x):
        return self.layers(x)
model, answered = Enc().eval(), 0
async def answer(reader, writer):
    global answered
    while await reader.readline():
        if answered % 10 == 9:
            time.sleep(0.2)  # blocks the event loop, and is no fault of the model
        with torch.inference_mode():
            writer.write(b"%f\\n" % model(torch.ones(1, 256)).sum().item())
        answered += 1
    writer.close()
async def ask(server):
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    for _ in range(60):
        writer.write(b"x\\n")
        await reader.readline()
        await asyncio.sleep(0.01)
    writer.close()
async def main():
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        await ask(server)
asyncio.run(main())
"""


def test_requests_of_an_inference_server_are_no_steps_and_no_verdict_compares_them(tmp_path):
    (tmp_path / "live").mkdir(mode=0o700)
    (tmp_path / "server.py").write_text(SERVER)
    env = {**base.without_kymo(os.environ), "KYMO_DIR": str(tmp_path / "live"), "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
    base.run([base.KYMO, "run", "-q", "-o", "out", "--torch", "--", sys.executable, "server.py"], env, tmp_path)
    said = base.run([base.KYMO, "query", "out", "-f", "json", "SELECT (SELECT count(*) FROM trace.steps) AS steps, count(*) AS "
                     "forwards FROM python.torch_trace WHERE module = 'Enc'"], env, tmp_path).stdout
    assert json.loads(said) == [{"steps": 0, "forwards": 60}]
    report = json.loads(base.run([base.KYMO, "report", "out", "-f", "json"], env, tmp_path).stdout)
    assert [one["sentence"] for one in report["verdicts"] if "step" in one["sentence"] or one["name"] == "spread"] == []
