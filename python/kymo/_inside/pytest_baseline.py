"""Times of tests from several runs, kept in a file of the repository, and whether a run is slower than them."""
from __future__ import annotations

import json
import math
import os
import platform
import statistics

VERSION = 1
KEPT_RUNS = 20  # of each test
LEAST_RUNS = 3  # before a test is compared
FALSE_ALARMS = 0.01  # the share of runs without a change that may name a slower test
TOTAL = "all tests"


def machine() -> str:
    """What times depend on most: processor, cores, Python."""
    model = platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores, Python {'.'.join(platform.python_version_tuple()[:2])}"


class BaselineError(Exception):
    """The file cannot be used; the text says why and what to do."""


class Baseline:
    """Seconds of each test, oldest run first."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.machine = machine()
        self.tests: dict[str, list[float]] = {}
        if os.path.exists(path):
            self._read()

    def _read(self) -> None:
        try:
            with open(self.path, encoding="utf-8") as file:
                data = json.load(file)
            if data["kymo_baseline"] != VERSION:
                raise BaselineError(f"cannot use {self.path}: it is of version {data['kymo_baseline']}, not {VERSION}; "
                                    f"make it again with --kymo-update-baseline")
            self.machine = str(data["machine"])
            self.tests = {str(name): [float(one) for one in seconds if float(one) > 0] for name, seconds in data["tests"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BaselineError(f"cannot read {self.path}: {type(error).__name__}: {error}; "
                                f"restore it, or remove it and make it again with --kymo-update-baseline") from None

    def is_of_this_machine(self) -> bool:
        return self.machine == machine()

    def add(self, run: dict[str, float]) -> None:
        """Adds a run. Times of another machine are not mixed with these: they are replaced."""
        if not self.is_of_this_machine():
            self.machine, self.tests = machine(), {}
        for name, seconds in run.items():
            self.tests[name] = [*self.tests.get(name, []), seconds][-KEPT_RUNS:]

    def write(self) -> None:
        """One line for each test, sorted, so that a diff shows what changed. The file is replaced as a whole."""
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps([float(f'{one:.3g}') for one in seconds])}"
                          for name, seconds in sorted(self.tests.items()))
        aside = f"{self.path}.{os.getpid()}.tmp"
        with open(aside, "w", encoding="utf-8") as file:
            file.write(f'{{"kymo_baseline": {VERSION}, "machine": {json.dumps(self.machine)}, "tests": {{\n{rows}\n}}}}\n')
        os.replace(aside, self.path)


class Verdict:
    """One test beside its baseline."""

    def __init__(self, name: str, seconds: float, usual: float, limit: float, runs: int, allowed: float) -> None:
        self.name, self.seconds, self.usual, self.limit, self.runs = name, seconds, usual, limit, runs
        self.change = seconds / usual - 1
        self.is_slower = seconds > limit and self.change > allowed


def _spread(logs: list[float]) -> float:
    return statistics.variance(logs) if len(logs) > 1 else 0.0


def compare(baseline: Baseline, run: dict[str, float], allowed: float) -> list[Verdict]:
    """The tests that can be compared, the greatest change first.

    Times of a test differ by factors, so logarithms are compared. The limit of a test is what a run without a change exceeds
    with a probability of FALSE_ALARMS in all tests together: its geometric mean times the spread of its own runs, or of those
    of all tests if that is larger, since a few runs may agree by chance. A test is slower if it exceeds this limit and
    `allowed`, too.
    """
    known = {name: [math.log(one) for one in seconds] for name, seconds in baseline.tests.items()
             if len(seconds) >= LEAST_RUNS and run.get(name, 0) > 0}
    if not known:
        return []
    degrees = sum(len(logs) - 1 for logs in known.values())
    common = sum(_spread(logs) * (len(logs) - 1) for logs in known.values()) / degrees
    z = statistics.NormalDist().inv_cdf(1 - FALSE_ALARMS / len(known))
    verdicts = []
    for name, logs in known.items():
        middle = statistics.fmean(logs)
        spread = math.sqrt(max(common, _spread(logs)) * (1 + 1 / len(logs)))
        verdicts.append(Verdict(name, run[name], math.exp(middle), math.exp(middle + z * spread), len(logs), allowed))
    return sorted(verdicts, key=lambda one: -one.change)


def total(baseline: Baseline, run: dict[str, float], allowed: float) -> Verdict | None:
    """All tests together, as one: those that the runs of the baseline have, too."""
    names = [name for name in run if len(baseline.tests.get(name, [])) >= LEAST_RUNS]
    if not names:
        return None
    runs = min(len(baseline.tests[name]) for name in names)
    whole = Baseline(os.devnull + "/none")
    whole.tests = {TOTAL: [sum(baseline.tests[name][-1 - at] for name in names) for at in range(runs)]}
    return compare(whole, {TOTAL: sum(run[name] for name in names)}, allowed)[0]
