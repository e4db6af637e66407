"""A callback for the Trainer of Lightning: of the package `lightning`, or of `pytorch_lightning` where that is imported."""
from __future__ import annotations

import sys
from typing import Any

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback  # type: ignore[import-not-found,unused-ignore]
else:
    from lightning.pytorch import Callback  # type: ignore[import-not-found,unused-ignore]

from kymo._kymo import mark
from kymo.integrations._phases import Phases


class KymoCallback(Callback):  # type: ignore[misc,unused-ignore]
    """Training steps, validations, tests and predictions as zones, checkpoints as marks, logged metrics as counters."""

    def __init__(self) -> None:
        self._phases = Phases(Callback.__module__.partition(".")[0])

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, index: int) -> None:
        self._phases.begin("training step")

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, index: int) -> None:
        self._phases.end("training step")
        if trainer.log_every_n_steps and (index + 1) % trainer.log_every_n_steps == 0:
            self._phases.count(trainer.callback_metrics, trainer.global_step)

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        self._phases.begin("evaluation")

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        self._phases.end("evaluation")

    def on_test_start(self, trainer: Any, module: Any) -> None:
        self._phases.begin("evaluation")

    def on_test_end(self, trainer: Any, module: Any) -> None:
        self._phases.end("evaluation")

    def on_predict_start(self, trainer: Any, module: Any) -> None:
        self._phases.begin("prediction")

    def on_predict_end(self, trainer: Any, module: Any) -> None:
        self._phases.end("prediction")

    def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: Any) -> None:
        if self._phases.is_mine():
            mark("checkpoint", f"step {trainer.global_step}")

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self._phases.end_all()

    def on_fit_end(self, trainer: Any, module: Any) -> None:
        self._phases.count(trainer.callback_metrics)
        self._phases.end_all()
