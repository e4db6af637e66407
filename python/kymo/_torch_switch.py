"""enable_torch_profiling() and its opposite; torch itself is only looked for when they are called."""


def enable_torch_profiling() -> None:
    """Records forward and backward of every module and every optimizer step from now on (python.torch_trace).

    Begins recording, as enable() does. Where torch is not imported yet, as soon as it is. No module, tensor or graph is
    touched; what cannot be recorded with this version of torch is left out, and trace.marks says so (kymo.torch).
    """
    from kymo import _torch_auto

    _torch_auto.arm()


def disable_torch_profiling() -> None:
    """Gives everything back to torch; what was recorded stays."""
    from kymo import _torch_auto

    _torch_auto.disable()
