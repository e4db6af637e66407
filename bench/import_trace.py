#!/usr/bin/env python3
"""How fast kymo import is, and how much memory it takes, beside HolisticTraceAnalysis (HTA) on the same trace.

    bench/import_trace.py [--megabytes 200] [--hta /path/to/python] [--json]

HTA is measured if that Python has it (HTA_PYTHON names another one, for make bench).
The trace is made by tests/import/make_trace.py. CPU time counts, not the time on the clock:
other programs of the machine do not disturb it.
"""
import argparse
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/import"))
import make_trace  # noqa: E402

HTA = """
import sys
from hta.common.trace import Trace
trace = Trace(trace_files={0: sys.argv[1]}, trace_dir="")
trace.parse_traces(use_multiprocessing=False)
print(len(trace.get_trace(0)))
"""


def measured(*command):
    """CPU seconds and the largest resident memory of a command, in MB."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        errors = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
    if status:
        raise SystemExit(errors.decode()[-500:])
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def show(args, what, megabytes, events, measures):
    seconds, memory = measures
    above = max(0, memory - 64) * 2**20 / events
    if args.json:
        print(json.dumps({"key": f"import.{what}", "value": seconds * 1e3 / megabytes}))
        print(json.dumps({"key": f"import.{what}.memory", "value": above}))
        print(json.dumps({"key": f"import.{what}.rss", "value": memory}))
        return
    print(f"{what:12} {megabytes / seconds:8.0f} MB/s {seconds:8.2f} s CPU {memory:8.0f} MB {above:6.0f} bytes an event above 64 MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--hta", default=os.environ.get("HTA_PYTHON", sys.executable))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = pathlib.Path(folder) / "trace.json", pathlib.Path(folder) / "trace.json.gz"
        events = make_trace.write(plain, megabytes=args.megabytes)
        with plain.open("rb") as source, gzip.open(packed, "wb", 6) as out:
            shutil.copyfileobj(source, out)
        megabytes = plain.stat().st_size / 2**20
        if args.json:
            print(json.dumps({"key": "import.megabytes", "value": megabytes}))
            print(json.dumps({"key": "import.events", "value": events}))
        else:
            print(f"{megabytes:.0f} MB of JSON, {events} events")
        for path in (plain, packed):
            show(args, path.suffix[1:], megabytes, events,
                 measured(ROOT / "build/kymo", "import", "-q", path, "-o", pathlib.Path(folder) / path.suffix[1:]))
        if not subprocess.run([args.hta, "-c", "import hta.common.trace"], capture_output=True).returncode:
            show(args, "hta", megabytes, events, measured(args.hta, "-c", HTA, str(packed)))
        elif not args.json:
            print("HTA: not installed here")


if __name__ == "__main__":
    main()
