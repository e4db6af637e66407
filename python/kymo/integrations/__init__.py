"""Callbacks for trainers, for programs that name what records them.

    kymo.integrations.transformers.KymoCallback     Trainer(..., callbacks=[KymoCallback()])
    kymo.integrations.lightning.KymoCallback        Trainer(..., callbacks=[KymoCallback()])
    kymo.integrations.accelerate.KymoTracker        Accelerator(log_with=KymoTracker())

Under `kymo run`, and in kymo.recording(), trainers are recorded without them; then they do nothing.
"""
