"""Kitsune's profiler, implemented by kymo: `from kitsune.profiler import CUDATimer, …`."""
from _kymo_compat import give_way

give_way(__name__)
