#!/usr/bin/env python3
"""Prints how far above its threshold each planted problem is.

    margins.py [--busy] [WORDS…]    --busy: beside four busy loops

Runs the programs of the tests whose cause contains one of the words, or all, one after the other, and prints the gain, the
threshold, their ratio, the rank of the finding and its function. A ratio below 1.5 is thin: widen the program.
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import conftest  # noqa: E402
import test_detectors  # noqa: E402
import test_findings  # noqa: E402
import test_where  # noqa: E402

RULES = conftest.ROOT / "src/views/verdicts/rules"
THIN = 1.5
LOOPS = 4


def thresholds():
    """By the name of the rule."""
    return {file.stem: float(re.search(r"^-- threshold: (.*)", file.read_text(), re.M)[1]) for file in RULES.rglob("*.sql")}


def programs():
    """(cause, verdict, command) of each planted problem."""
    for name, (words, *_) in test_detectors.CASES.items():
        yield name, name, words
    for cases in (test_where.CAUSES, test_findings.CAUSES):
        for cause, (verdict, words, *_) in cases.items():
            yield cause, verdict, words


def measure(chosen):
    limits, runs = thresholds(), conftest.Runs()
    for cause, verdict, words in chosen:
        run = conftest.Judged(runs, words)
        at = run.names().index(verdict) if verdict in run.names() else None
        one = run.verdicts[at] if at is not None else None
        ratio = one["gain_pct"] / 100 / limits[verdict] if one else 0
        where = one["where"]["function"] if one and one["where"] else "-"
        print(f"{cause:28} {verdict:10} {one['gain_pct'] if one else 0:6.1f} %  threshold {100 * limits[verdict]:3.0f} %  "
              f"{ratio:5.1f} x{'  THIN' if ratio < THIN else ''}  #{at + 1 if one else '-'}  {where}", flush=True)


def main():
    words = [word for word in sys.argv[1:] if word != "--busy"]
    chosen = [one for one in programs() if not words or any(word in one[0] for word in words)]
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(LOOPS if "--busy" in sys.argv else 0)]
    try:
        measure(chosen)
    finally:
        for one in loops:
            one.kill()
            one.wait()


if __name__ == "__main__":
    main()
