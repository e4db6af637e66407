"""Measures the highest rate of this CPU: _torch_peak.py THREADS prints a type and its FLOP/s on each line."""
import os
import sys
import time
from typing import Any

SIZE = 2048
SECONDS = 0.5


def rate(torch: Any, dtype: Any) -> float:
    """The fastest of the products of two square matrices."""
    a, b = torch.randn(SIZE, SIZE).to(dtype), torch.randn(SIZE, SIZE).to(dtype)
    out, best, end = torch.mm(a, b), 0.0, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        torch.mm(a, b, out=out)
        best = max(best, 2 * SIZE ** 3 / (time.perf_counter() - start))
    return best


def main() -> None:
    sys.path[:] = os.environ.pop("KYMO_TORCH_TRIAL").split(os.pathsep)
    import torch

    torch.set_num_threads(int(sys.argv[1]))
    for dtype in (torch.float32, torch.bfloat16):
        print(str(dtype).removeprefix("torch."), rate(torch, dtype))


if __name__ == "__main__":
    main()
