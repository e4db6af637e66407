"""enable_torch_profiling() and disable_torch_profiling(); torch is not imported before they are called."""


def enable_torch_profiling() -> None:
    """Records forward and backward of every module and every optimizer step from now on (python.torch_trace).

    Starts recording like enable(). If torch is not imported yet, it takes effect when it is. No module, tensor or graph
    is changed. What this version of torch does not support is left out and noted in trace.marks (kymo.torch).
    """
    from kymo import _torch_auto

    _torch_auto.arm()


def disable_torch_profiling() -> None:
    """Removes all hooks from torch; recorded data stays."""
    from kymo import _torch_auto

    _torch_auto.disable()
