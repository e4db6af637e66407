"""A tracker for Hugging Face Accelerate."""
from __future__ import annotations

from typing import Any

from accelerate.tracking import GeneralTracker  # type: ignore[import-not-found,unused-ignore]

from kymo.integrations._phases import Phases


class KymoTracker(GeneralTracker):  # type: ignore[misc,unused-ignore]
    """`accelerator.log()` records counters; `log_with=KymoTracker()`, then `init_trackers()`, as with any tracker."""

    name = "kymo"
    requires_logging_directory = False

    def __init__(self, run_name: str = "kymo") -> None:
        super().__init__()
        self.run_name = run_name
        self._phases = Phases("accelerate")

    @property
    def tracker(self) -> Phases:
        return self._phases

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Nothing: a recording has the command line and the environment of the program."""

    def log(self, values: dict[str, Any], step: int | None = None, **more: Any) -> None:
        self._phases.count(values, step)
