"""The names of probing, by kymo."""
from kymo import disable_torch_profiling, enable_torch_profiling

__all__ = ["disable_torch_profiling", "enable_torch_profiling"]
