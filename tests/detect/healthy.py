#!/usr/bin/env python3
"""Runs programs without a problem, a hundred times in all, and counts the findings that are not there: `make healthy`.

    healthy.py [RUNS]

Each program is the healthy twin of one with a problem (test_where.py, test_findings.py). It may have the findings that are named
beside it, because they are true: a program that computes has a costliest function. Others are false if they are above 5 % of the
time. What other programs of the machine do (crowded) is no fault of a program and is not counted.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo"))
NATIVE = ROOT / "build/tests/progs"
PROGS = pathlib.Path(__file__).parent / "progs"
TRUE_OF_ALL = {"function", "region", "crowded", "coverage", "import", "module"}  # what takes most time is no fault


def python(file, *words):
    return [sys.executable, PROGS / file, *words]


# name: (command, findings that are true of it beside those of all)
PROGRAMS = {
    "even steps": (python("steps.py", "even"), {"waiting"}),  # its work is a sleep
    "no wait": (python("waits.py", "sleep", "0.05"), set()),
    "quick backend": (python("waits.py", "socket", "0.05"), set()),
    "quick child": (python("waits.py", "child", "0.05"), set()),
    "free lock": (python("waits.py", "lock", "0.05"), set()),
    "no checkpoint": (python("loops.py", "checkpoint", "few"), set()),
    "little between": (python("loops.py", "between", "few"), set()),
    "quick data": (python("loops.py", "data", "few"), set()),
    "little garbage": (python("loops.py", "gc", "few"), set()),
    "few files": (python("loops.py", "files", "few"), set()),
    "no growth": (python("loops.py", "growth", "few"), {"waiting"}),  # it sleeps
    "no leak": (python("findings.py", "leak", "few"), set()),
    "busy pool": (python("findings.py", "pool", "few"), {"waiting"}),  # it waits for the workers, which compute
    "generated code": (python("findings.py", "generated", "few"), {"waiting"}),
    "one thread": (python("gil.py", "1"), {"waiting"}),  # the main thread waits for it
    "large zones": ([NATIVE / "detect_native", "large"], set()),
    "own locks": ([NATIVE / "detect_native", "own"], set()),
    "C": ([NATIVE / "detect_waits", "compute", "1.5"], set()),
    "awaiting loop": (python("event_loops.py", "awaiting"), {"waiting"}),
    "short": (python("findings.py", "short", "few"), set()),
}


def findings(command, folder):
    """The findings of one run, at the rates that kymo chooses."""
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}, "KYMO_DIR": f"{folder}/live",
           "XDG_STATE_HOME": folder, "LC_ALL": "C.UTF-8"}
    os.mkdir(f"{folder}/live", 0o700)
    subprocess.run([KYMO, "run", "-q", "-o", f"{folder}/rec", "--", *command], env=env, check=True, capture_output=True, timeout=600,
                   stdin=subprocess.DEVNULL)
    done = subprocess.run([KYMO, "report", f"{folder}/rec", "-f", "json"], env=env, check=True, capture_output=True)
    report = json.loads(done.stdout)
    assert not report["problems"], report["problems"]
    return report["verdicts"]


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    false = collections.Counter()
    for number in range(runs):
        name = list(PROGRAMS)[number % len(PROGRAMS)]
        command, true = PROGRAMS[name]
        with tempfile.TemporaryDirectory(prefix="kymo-healthy-") as folder:
            for one in findings([str(word) for word in command], folder):
                if one["name"] and one["name"] not in true | TRUE_OF_ALL and one["gain_pct"] > 5:
                    false[f"{name}: {one['name']}"] += 1
                    print(f"{name}: {one['name']}: {one['sentence']}", flush=True)
    print(f"{runs} healthy runs, {sum(false.values())} false findings above 5 %, "
          f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for what, count in false.most_common():
        print(f"  {count:3} {what}")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
