"""How much sampling slows a program: JSON lines for bench/run.

    bench/stack_pairs.py STACK_PAIRS [PAIRS]    the executable of bench/stacks/stack_pairs.c

One program does the same small piece of work over and over and notes when each piece ended. Beside it, windows of 5 ms
with samples alternate with windows without any: so both are of the same process, the same heat of the machine and the same
neighbours, a moment apart. Pieces that were interrupted for longer than a whole sample takes are left out, in both. What a
sample does to the program it does within a window: of periods that are longer than a window there is one sample in each,
and the slowdown is that of the window by its share of the period.
"""
import array
import bisect
import contextlib
import json
import math
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile

WINDOW_MS = 5
PERIODS_MS = (100, 10, 1)
LONGER_PAIRS = 2  # times as many of those windows that serve two periods
INTERRUPTED_NS = 200_000  # a piece that was delayed for longer than a whole sample takes: by another process
PIECES_LEAST = 20  # of a window
TRIMMED = 0.1  # of each end: windows disturbed by other processes
DRAWS = 2000

WORK = """
import array, signal, sys, time
ends, clock, go_on = array.array("q", bytes(8 * 4_000_000)), time.monotonic_ns, True
def stop(*_):
    global go_on
    go_on = False
signal.signal(signal.SIGTERM, stop)
def f(n): return n * n
def work():
    at, most = 0, len(ends)
    while go_on and at < most:
        for n in range(500): f(n)
        ends[at] = clock()
        at += 1
    return at
def down(n): return down(n - 1) if n else work()
sys.stdout.write("ready\\n"); sys.stdout.flush()
count = down(17)
with open(sys.argv[1], "wb") as file: ends[:count].tofile(file)
"""

# It may make no system call but read, write and exit: any other one is its death (seccomp, strict).
NO_CALLS = """
import ctypes, sys
def f(n): return n * n
prctl = ctypes.CDLL(None, use_errno=True).prctl
def down(n):
    if n: return down(n - 1)
    sys.stdout.write("ready\\n"); sys.stdout.flush()
    if prctl(22, 1, 0, 0, 0): sys.exit(3)
    while True:
        for n in range(500): f(n)
down(17)
"""


def say(key, value):
    print(json.dumps({"key": f"stacks.{key}", "value": value}))


def apart(which):
    """The program on one processor and the sampler on another, before their neighbours where that is allowed."""
    def settle():
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[which % len(cores)]})
        with contextlib.suppress(OSError):
            os.nice(-15)
    return settle


def started(code, *arguments):
    child = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True,
                             preexec_fn=apart(0))
    if child.stdout.readline() != "ready\n":
        raise SystemExit("the program does not run")
    return child


def windows(stack_pairs, pid, period_ms, pairs):
    out = subprocess.run([stack_pairs, str(pid), str(period_ms * 1000), str(WINDOW_MS * 1000), str(pairs)], check=True,
                         capture_output=True, text=True, preexec_fn=apart(1)).stdout
    return [[int(word) for word in line.split()] for line in out.splitlines()]


# --- what the windows say ------------------------------------------------------------------------------------

def piece(ends, began, ended):
    """How long a piece of work took in that window, on average, and the share of pieces that were left out."""
    first, last = bisect.bisect_left(ends, began), bisect.bisect_left(ends, ended)
    took = [after - before for before, after in zip(ends[first:last], ends[first + 1:last])]
    if len(took) < PIECES_LEAST:
        return None
    kept = [ns for ns in took if ns < statistics.median(took) + INTERRUPTED_NS]
    return sum(kept) / len(kept), 1 - len(kept) / len(took)


def differences(ends, rows):
    """For each pair how much longer a piece took where it was sampled, and what was left out: without samples, with."""
    by_pair, out = {}, ([], [])
    for pair, sampled, began, ended, _count in rows:
        found = piece(ends, began, ended)
        if found:
            by_pair.setdefault(pair, {})[sampled] = found[0]
            out[sampled].append(found[1])
    whole = [pair for pair in by_pair.values() if len(pair) == 2]
    return [math.log(pair[1] / pair[0]) for pair in whole], [100 * statistics.mean(shares) for shares in out]


def trimmed_mean(values):
    cut = int(TRIMMED * len(values))
    kept = sorted(values)[cut:len(values) - cut]
    return sum(kept) / len(kept)


def interval(values):
    """The trimmed mean and what holds it with 95 %, by drawing anew from the pairs."""
    draw = random.Random(1)
    means = sorted(trimmed_mean(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return trimmed_mean(values), means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS)]


def slowdown(stack_pairs, pairs):
    with tempfile.TemporaryDirectory() as tmp:
        file = pathlib.Path(tmp) / "ends"
        child = started(WORK, str(file))
        try:
            single = windows(stack_pairs, child.pid, WINDOW_MS, LONGER_PAIRS * pairs)
            rows = {100: single, 10: single, 1: windows(stack_pairs, child.pid, 1, pairs)}
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait()
        ends = array.array("q")
        ends.frombytes(file.read_bytes())
    for period in PERIODS_MS:
        share = min(1, WINDOW_MS / period)
        values, left_out = differences(ends, rows[period])
        for which, value in zip(("", ".low", ".high"), interval(values)):
            say(f"slow.{period}{which}", 100 * share * value)
        for which, value in zip(("without", "with"), left_out):
            say(f"slow.{period}.left_out.{which}", value)
        say(f"slow.{period}.pairs", len(values))


# --- what the program does for it ------------------------------------------------------------------------------

def done_by(pid):
    """Switches of its own will and page faults of a process so far."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    faults = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields["voluntary_ctxt_switches"]) + int(faults[7]) + int(faults[9])


def caused(stack_pairs):
    child = started(NO_CALLS)
    try:
        while "\nSeccomp:\t1\n" not in pathlib.Path(f"/proc/{child.pid}/status").read_text():
            if child.poll() is not None:
                raise SystemExit("the program may not give up its system calls")
        before = done_by(child.pid)
        samples = sum(row[4] for row in windows(stack_pairs, child.pid, 1, 400))
        after = done_by(child.pid)
        if child.poll() is not None:
            raise SystemExit("the program made a system call while it was sampled, and was killed")
    finally:
        child.kill()
        child.wait()
    say("caused", after - before)
    say("caused.samples", samples)


if __name__ == "__main__":
    caused(sys.argv[1])
    slowdown(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1700)
