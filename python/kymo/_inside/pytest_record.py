"""pytest --kymo: a recording of the tests, their times beside a baseline, and what the terminal and JUnit files say of them."""
from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from kymo._inside.pytest_baseline import LEAST_RUNS, Baseline, BaselineError, Verdict, compare, total

SHOWN = 10


def _worker(config: Any) -> str:
    """The name of this worker of pytest-xdist; "" in a run without, and in the process that controls workers."""
    return str(getattr(config, "workerinput", {}).get("workerid", ""))


def _of_worker(path: str, worker: str) -> str:
    stem, extension = os.path.splitext(path)
    return f"{stem}-{worker}{extension}"


class Recorder:
    """The plugin that is registered with an option of kymo, and only then."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.recording: Any = None
        self.times: dict[str, float] = {}
        self.verdicts: list[Verdict] = []
        self.said: list[str] = []
        path = os.path.join(str(config.rootpath), config.option.kymo_baseline)
        try:
            self.baseline = Baseline(path)
        except BaselineError as error:
            raise pytest.UsageError(f"--kymo-baseline: {error}") from None

    # --- the recording ---

    def _is_controller(self) -> bool:
        """Of workers of pytest-xdist: it runs no test itself."""
        return bool(getattr(self.config.option, "tx", None)) and not _worker(self.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        if not self.config.option.kymo or self._is_controller():
            return
        import kymo

        path = self.config.option.kymo_output
        worker = _worker(self.config)
        self.recording = kymo.start(_of_worker(path, worker) if worker else path)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        if self.recording is not None:
            self.recording.stop()
        if _worker(self.config):
            return
        self._judge()
        if exitstatus == 0 and any(one.is_slower for one in self.verdicts):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.config.option.kymo_update_baseline:
            self._update(int(exitstatus))

    # --- times; of workers they arrive with their reports ---

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
        if call.when == "call":
            item.user_properties.append(("kymo_ms", f"{call.duration * 1000:.3f}"))
            earlier = self.baseline.tests.get(item.nodeid, [])
            if len(earlier) >= LEAST_RUNS:
                item.user_properties.append(("kymo_baseline_ms", " ".join(f"{one * 1000:.3f}" for one in earlier)))
        yield

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.times[report.nodeid] = report.duration

    def _judge(self) -> None:
        allowed = self.config.option.kymo_fail_above
        if allowed is None or not self.times:
            return
        if not self.baseline.tests:
            self.said.append(f"no baseline to compare with: {self.baseline.path} does not exist; "
                             f"make it with --kymo-update-baseline, {LEAST_RUNS} runs or more")
        elif not self.baseline.is_of_this_machine():
            self.said.append(f"not compared: the baseline is of another machine ({self.baseline.machine})")
        else:
            self.verdicts = compare(self.baseline, self.times, allowed)
            whole = total(self.baseline, self.times, allowed)
            self.verdicts += [whole] if whole else []
            few = sum(1 for name in self.times if len(self.baseline.tests.get(name, [])) < LEAST_RUNS)
            if few:
                self.said.append(f"{few} {'test has' if few == 1 else 'tests have'} fewer than {LEAST_RUNS} runs in the baseline")

    def _update(self, exitstatus: int) -> None:
        if exitstatus:
            self.said.append("the baseline is not updated: the run did not pass")
            return
        self.baseline.add(self.times)
        try:
            self.baseline.write()
        except OSError as error:
            self.said.append(f"cannot write the baseline {self.baseline.path}: {error.strerror}")
            return
        runs = max(map(len, self.baseline.tests.values()), default=0)
        self.said.append(f"the baseline {self.baseline.path} has {len(self.baseline.tests)} tests, up to {runs} runs each")

    # --- what is shown ---

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        write = terminalreporter.write_line
        terminalreporter.section("kymo")
        slower = [one for one in self.verdicts if one.is_slower]
        if self.verdicts:
            self._table(write, slower or self.verdicts[:3] + self.verdicts[-1:])
            allowed = self.config.option.kymo_fail_above
            write(f"{len(slower)} of {len(self.verdicts)} slower than the baseline by more than {allowed * 100:g} % "
                  "and than its runs differ")
        elif self.times:
            slowest = sorted(self.times.items(), key=lambda one: -one[1])[:SHOWN]
            for name, seconds in slowest:
                write(f"{seconds * 1000:10.1f} ms  {name}")
        for line in self.said:
            write(line)
        if self.recording is not None and os.path.exists(self.recording.path):
            path = os.path.relpath(self.recording.path)
            write(f"recording: {path}; see it with: kymo report {path}")
        elif self.config.option.kymo and self._is_controller():
            write(f"recordings: one of each worker: {_of_worker(self.config.option.kymo_output, 'gw0')} and so on")

    def _table(self, write: Any, verdicts: list[Verdict]) -> None:
        write(f"{'now':>10}  {'baseline':>10}  {'limit':>10}  {'change':>8}  runs  test")
        for one in verdicts[:SHOWN]:
            write(f"{one.seconds * 1000:7.1f} ms  {one.usual * 1000:7.1f} ms  {one.limit * 1000:7.1f} ms  {one.change * 100:+7.1f}%  "
                  f"{one.runs:4}  {one.name}{'  SLOWER' if one.is_slower else ''}")
        if len(verdicts) > SHOWN:
            write(f"and {len(verdicts) - SHOWN} more")
