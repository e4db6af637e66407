"""Native samples of a torch training under kymo run: how many stacks are complete and merged, what was lost, and the CPU time
of unwinding and naming them.

    .venv/bin/python bench/native_samples.py [SECONDS]

Prints a JSON line. us_a_sample is the CPU time of the sampler's thread for each sample, after its first write, which reads the
symbols of the libraries (first_ms); ms_10000 is what 10,000 stacks take by these two. The cost of a sample for the program itself is
that of build/bench/native_sample.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAINING = """
import sys, time, torch
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()) for _ in range(6)])
optimizer, data = torch.optim.SGD(model.parameters(), lr=0.01), torch.randn(128, 256)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    optimizer.zero_grad()
    model(data).pow(2).mean().backward()
    optimizer.step()
"""


def query(recording, sql):
    out = subprocess.run([ROOT / "build/kymo", "query", "-f", "json", recording, sql], check=True, capture_output=True, timeout=120)
    return json.loads(out.stdout)


def main():
    seconds = sys.argv[1] if len(sys.argv) > 1 else "20"
    with tempfile.TemporaryDirectory() as folder:
        script, recording = pathlib.Path(folder, "training.py"), pathlib.Path(folder, "run")
        script.write_text(TRAINING)
        subprocess.run([ROOT / "build/kymo", "run", "-q", "-o", recording, "--", sys.executable, script, seconds], check=True,
                       timeout=600)
        found = query(recording, """
            SELECT count(*) AS samples, avg(complete::INT) AS complete, avg(len(stack)) AS depth,
                count(*) FILTER (python = 'merged') AS merged, count(*) FILTER (python = 'apart') AS apart,
                sum(weight_ns) / 1e9 AS cpu_s
            FROM native.samples WHERE activity = 'running'""")[0]
        costs = query(recording, "SELECT events, cost_ns FROM kymo.costs WHERE source = 'native' AND events > 0 ORDER BY ts_ns")
        lost = query(recording, "SELECT coalesce(sum(dropped), 0) AS n FROM kymo.streams WHERE table_name = 'native.samples'")[0]["n"]
    first, last = costs[0], costs[-1]
    each = (last["cost_ns"] - first["cost_ns"]) / max(1, last["events"] - first["events"])
    begin = max(0, first["cost_ns"] - each * first["events"])
    print(json.dumps({**found, "lost": lost, "us_a_sample": round(each / 1e3, 1), "first_ms": round(begin / 1e6, 1),
                      "ms_10000": round((begin + 10000 * each) / 1e6, 1)}))


if __name__ == "__main__":
    main()
