"""probing, implemented by kymo."""
from _kymo_compat import give_way

if not give_way(__name__):
    from kymo import disable_torch_profiling, enable_torch_profiling

    __all__ = ["disable_torch_profiling", "enable_torch_profiling"]
