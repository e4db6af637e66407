"""What profilers cost the program that they sample 100 times a second, native frames included where they can: the CPU time
that the program measures for the same work, as a ratio to a plain run just before it (the median of the pairs), and the stacks
that were taken for each second of it.

    .venv/bin/python bench/native_peers.py [PAIRS [WORK]]

JSON lines with key and value. kymo, py-spy, perf, austin and scalene are run if they are on PATH or in .venv/bin; a peer that
is not installed or fails is left out, with the reason on stderr. Profilers that sample in the program (scalene) count with what they do
there; for all others it is what the kernel or their reading does to it.
"""
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = """
import hashlib, sys, time
data, work = b"x" * 2_000_000, float(sys.argv[1])
def sums(n):
    total = 0
    for i in range(n):
        total += i & 7
    return total
def digest():
    return hashlib.sha256(data).digest()
cpu, wall = time.process_time(), time.perf_counter()
for _ in range(int(40 * work)):
    digest()
    sums(150_000)
print("TIMES", time.process_time() - cpu, time.perf_counter() - wall, flush=True)
"""
C = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile unsigned long sink;
static double now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) static void inner(void) { for (unsigned i = 0; i < 1000000; i++) sink += i * i; }
__attribute__((noinline)) static void outer(int depth)
{
    volatile char frame[512];
    frame[0] = 1;
    if (depth)
        outer(depth - 1);
    else
        inner();
    sink += frame[0];
}
int main(int argc, char **argv)
{
    double cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
    int count = (int)(600 * (argc > 1 ? strtod(argv[1], NULL) : 1));
    for (int i = 0; i < count; i++)
        outer(20);
    printf("TIMES %f %f\\n", now(CLOCK_PROCESS_CPUTIME_ID) - cpu, now(CLOCK_MONOTONIC) - wall);
    return 0;
}
"""


def tool(name):
    beside = ROOT / ".venv/bin" / name
    return str(beside) if beside.exists() else shutil.which(name)


def counted_kymo(folder):
    done = subprocess.run([ROOT / "build/kymo", "query", "-f", "json", folder / "kymo", "SELECT count(*) AS n, avg(complete::INT) AS c "
                           "FROM native.samples WHERE activity = 'running'"], capture_output=True, check=True, timeout=120)
    row = json.loads(done.stdout)[0]
    return row["n"], row["c"]


def counted_perf(folder):
    done = subprocess.run(["perf", "script", "-i", folder / "perf", "-F", "ip,sym"], capture_output=True, text=True, check=True,
                          timeout=600)
    blocks = [block for block in done.stdout.strip().split("\n\n") if block]
    return len(blocks), sum(bool(re.search(r"\b(_start|clone3?|main)\b", block)) for block in blocks) / max(1, len(blocks))


def counted_folded(path):
    lines = [line for line in path.read_text(errors="replace").splitlines() if re.search(r" \d+$", line)]
    return sum(1 if "P:" in line[:4] else int(line.rsplit(" ", 1)[1]) for line in lines), None


def commands(folder, program):
    """name: (the words before the program, what counts its samples)."""
    python = program[0] == sys.executable
    rows = {"kymo": ([str(ROOT / "build/kymo"), "run", "--force", "-q", "-o", str(folder / "kymo"), "--"], counted_kymo),
            "perf": (["perf", "record", "-q", "-e", "task-clock:u", "-F", "100", "--call-graph", "dwarf,32768", "-o",
                      str(folder / "perf"), "--"], counted_perf)}
    if python:
        rows["py-spy"] = (["py-spy", "record", "--native", "-r", "100", "-f", "raw", "-o", str(folder / "spy"), "--"],
                          lambda folder: counted_folded(folder / "spy"))
        rows["austin"] = (["austin", "-i", "10ms", "-o", str(folder / "austin")], lambda folder: counted_folded(folder / "austin"))
        rows["scalene"] = (["scalene", "run", "--cpu-only", "-o", str(folder / "scalene.json")], lambda folder: (None, None))
    for name in list(rows):
        found = name == "kymo" or tool(name)
        if not found:
            print(f"{name} is not installed", file=sys.stderr)
            del rows[name]
        elif name != "kymo":
            rows[name][0][0] = found
    return rows


def times(words, folder):
    """CPU and wall seconds that the program printed; None if it did not run."""
    env = {**os.environ, "KYMO_DIR": str(folder / "live"), "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(list(map(str, words)), cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    found = re.search(r"TIMES (\S+) (\S+)", done.stdout)
    return (float(found[1]), float(found[2])) if found else None, done.stderr


def compare(folder, language, program, pairs):
    ratios, rates = {}, {}
    rows = commands(folder, program)
    for _ in range(pairs):
        for name, (before, count) in list(rows.items()):
            after = program[1:] if name == "scalene" else program
            plain, _ = times(program, folder)
            sampled, why = times([*before, *after], folder)
            if not sampled:
                print(f"{name} failed: {why.strip()[-300:]}", file=sys.stderr)
                del rows[name]
                continue
            ratios.setdefault(name, []).append((sampled[0] / plain[0], sampled[1] / plain[1]))
            rates.setdefault(name, []).append((count(folder), sampled[0]))
    for name, list_of in ratios.items():
        of = f"native.{language}.{name}"
        (samples, complete), cpu = rates[name][-1]
        print(json.dumps({"key": f"{of}.cpu", "value": statistics.median(cpu for cpu, _ in list_of)}))
        print(json.dumps({"key": f"{of}.wall", "value": statistics.median(wall for _, wall in list_of)}))
        if samples is not None:
            print(json.dumps({"key": f"{of}.rate", "value": samples / cpu}))
        if complete is not None:
            print(json.dumps({"key": f"{of}.complete", "value": 100 * complete}))


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    work = sys.argv[2] if len(sys.argv) > 2 else "3"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "live").mkdir(mode=0o700)
        (folder / "program.py").write_text(PYTHON)
        (folder / "program.c").write_text(C)
        compare(folder, "python", [sys.executable, str(folder / "program.py"), work], pairs)
        if shutil.which("cc"):
            subprocess.run(["cc", "-O2", "-g", "-o", folder / "program", folder / "program.c"], check=True, timeout=60)
            compare(folder, "c", [str(folder / "program"), work], pairs)


if __name__ == "__main__":
    main()
