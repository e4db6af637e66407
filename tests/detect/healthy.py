#!/usr/bin/env python3
"""Runs programs without a problem, a hundred times in all, and counts the findings that are not there: `make healthy`.

    healthy.py [--busy] [RUNS]    --busy: beside four busy loops

Each program is the healthy twin of one with a problem. Findings that are true of it are named beside it, with the function or the
region that they have to name: a program that computes has a costliest function, one whose work is a sleep waits. Any other finding
above 5 % of the time is false, also one of these kinds that names something else. That a thread had no core (crowded) is true if
other programs used a fifth of the cores or more meanwhile.
"""
import collections
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo"))
NATIVE = ROOT / "build/tests/progs"
PROGS = pathlib.Path(__file__).parent / "progs"
LEAST_PCT = 5
CROWD = 0.2  # of the cores
LOOPS = 4


def python(file, *words):
    return [sys.executable, PROGS / file, *words]


COMPUTES = {"function": "compute"}
# name: (command, {finding that is true of it: what it names})
PROGRAMS = {
    "even steps": (python("steps.py", "even"), {"waiting": "<module>", "region": "<module>"}),  # its work is a sleep
    "no wait": (python("waits.py", "sleep", "0.05"), COMPUTES),
    "quick backend": (python("waits.py", "socket", "0.05"), COMPUTES),
    "quick child": (python("waits.py", "child", "0.05"), COMPUTES),
    "free lock": (python("waits.py", "lock", "0.05"), COMPUTES),
    "no checkpoint": (python("loops.py", "checkpoint", "few"), {"function": "forward", "region": "forward"}),
    "little between": (python("loops.py", "between", "few"), {"function": "forward", "region": "forward"}),
    "quick data": (python("loops.py", "data", "few"), {"function": "forward", "region": "forward"}),
    "little garbage": (python("loops.py", "gc", "few"), {"function": "collections"}),
    "few files": (python("loops.py", "files", "few"), {"function": "files"}),
    "no growth": (python("loops.py", "growth", "few"), {"waiting": "growing"}),  # it sleeps
    "no leak": (python("findings.py", "leak", "few"), COMPUTES),
    "busy pool": (python("findings.py", "pool", "few"), {**COMPUTES, "waiting": "pool"}),  # it waits for workers, which compute
    "generated code": (python("findings.py", "generated", "few"), {"waiting": "generated"}),
    "one thread": (python("gil.py", "1"), {"function": "work", "waiting": "<module>"}),  # the main thread waits for it
    "large zones": ([NATIVE / "detect_native", "large"], {"region": "", "function": ""}),
    "own locks": ([NATIVE / "detect_native", "own"], {"function": "tokenize_shard|count_word|work"}),
    "C": ([NATIVE / "detect_waits", "compute", "1.5"], {"function": "compute_sums"}),
    "awaiting loop": (python("event_loops.py", "awaiting"), {"waiting": "<module>", "function": "<module>"}),
    "short": (python("findings.py", "short", "few"), COMPUTES),
}


def cores_of_others(before, seconds):
    """The share of all cores that processes beside the children of this one used since `before`."""
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy, own_s = cpu_seconds() - before[0], own.ru_utime + own.ru_stime - before[1]
    return (busy - own_s) / (seconds * (os.cpu_count() or 1))


def cpu_seconds():
    """Of the machine, without idle time and waits for storage."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def findings(command, folder):
    """The findings of one run, at the rates that kymo chooses, and the share of the cores that others used."""
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}, "KYMO_DIR": f"{folder}/live",
           "XDG_STATE_HOME": folder, "LC_ALL": "C.UTF-8"}
    os.mkdir(f"{folder}/live", 0o700)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    before, began = (cpu_seconds(), used.ru_utime + used.ru_stime), time.monotonic()
    subprocess.run([KYMO, "run", "-q", "-o", f"{folder}/rec", "--", *command], env=env, check=True, capture_output=True, timeout=600,
                   stdin=subprocess.DEVNULL)
    others = cores_of_others(before, time.monotonic() - began)
    done = subprocess.run([KYMO, "report", f"{folder}/rec", "-f", "json"], env=env, check=True, capture_output=True)
    report = json.loads(done.stdout)
    assert not report["problems"], report["problems"]
    return report["verdicts"], others


def is_true(one, true, others):
    """Whether the finding is true of the program, with the function that it names."""
    if one["name"] == "crowded":
        return others >= CROWD and "other programs use the cores" in one["sentence"]
    if one["name"] not in true:
        return False
    return bool(re.fullmatch(true[one["name"]] or ".*", one["where"]["function"] if one["where"] else ""))


def count_false(runs):
    """How many false findings each program had, as a counter of texts."""
    false = collections.Counter()
    for number in range(runs):
        name = list(PROGRAMS)[number % len(PROGRAMS)]
        command, true = PROGRAMS[name]
        with tempfile.TemporaryDirectory(prefix="kymo-healthy-") as folder:
            said, others = findings([str(word) for word in command], folder)
        for one in said:
            if one["name"] and one["gain_pct"] > LEAST_PCT and not is_true(one, true, others):
                false[f"{name}: {one['name']}"] += 1
                print(f"{name}: {one['name']}: {one['sentence']} {one['where']}; others used {100 * others:.0f} % of the cores",
                      flush=True)
    return false


def main():
    words = sys.argv[1:]
    busy = "--busy" in words
    runs = int(next((word for word in words if word.isdigit()), "100"))
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(LOOPS if busy else 0)]
    try:
        false = count_false(runs)
    finally:
        for one in loops:
            one.kill()
            one.wait()
    print(f"{runs} healthy runs, {sum(false.values())} false findings above {LEAST_PCT} %, "
          f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for what, count in false.most_common():
        print(f"  {count:3} {what}")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
