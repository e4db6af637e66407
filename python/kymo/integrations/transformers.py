"""A callback for the Trainer of Hugging Face transformers."""
from __future__ import annotations

from typing import Any

from transformers import TrainerCallback  # type: ignore[import-not-found,unused-ignore]

from kymo._kymo import mark
from kymo.integrations._phases import Phases


class KymoCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Training steps and evaluations as zones, checkpoints as marks, logged metrics as counters."""

    def __init__(self) -> None:
        self._phases = Phases("transformers")

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._phases.begin("training step")

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._phases.end("training step")

    def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._phases.begin_once("evaluation")  # from the end of its first batch: no event comes before

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._phases.end("evaluation")

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any = None, **more: Any) -> None:
        self._phases.end("evaluation")

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self._phases.is_mine():
            mark("checkpoint", f"step {state.global_step}")

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        self._phases.count(logs or {}, state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._phases.end_all()
