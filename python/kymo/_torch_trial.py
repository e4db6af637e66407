"""Tests an unknown build of torch in a separate process, which may crash: _torch_trial.py FILE.

Finds the offsets of the sequence and thread numbers in at::RecordFunction, on graphs with known numbers in several
threads; then runs a model with known rows, and finds the inputs of operators. Writes "ok OFFSET OFFSET …" or
"no REASON" to FILE.
"""
import os
import sys
import tempfile
import threading
from typing import Any


def main(folder: str) -> str:
    os.environ["KYMO_DIR"] = folder
    sys.path[:] = os.environ.pop("KYMO_TORCH_TRIAL").split(os.pathsep)
    here = os.path.dirname(os.path.abspath(__file__))
    import torch

    sys.path.append(here)
    import _torch_auto  # type: ignore[import-not-found]

    c = _torch_auto.extension()
    offsets = find(torch, c)
    if offsets is None:
        return "no the offsets of the sequence numbers in at::RecordFunction were not found"
    wrong = check(torch, c, offsets)
    if wrong:
        return f"no {wrong}"
    # If the inputs of operators are not found, modules are recorded all the same.
    lacking = c.operators(*_torch_auto.known_operators(torch), 100, True)
    return "ok " + " ".join(map(str, offsets + (() if lacking else c.layout())))


def find(torch: Any, c: Any) -> "tuple[int, int] | None":
    """Forward in five threads with distinct numbers, backward in this one: a word that always matches is the number."""
    graphs: list[Any] = []

    def one(number: int) -> None:
        x = torch.ones(2, requires_grad=True)
        for _ in range(1000 * (number + 3)):
            x + 1
        graphs.append(c.calibrate(lambda: ((x * 2).exp() + 1).tanh().sum()))

    c.calibrate_begin()
    for number in range(5):
        thread = threading.Thread(target=one, args=(number,))
        thread.start()
        thread.join()
        graphs.pop().backward()
    offsets: tuple[int, int] | None = c.calibrate_end()
    return offsets


def check(torch: Any, c: Any, offsets: "tuple[int, int]") -> "str | None":
    """Runs a net of three modules twice and checks its rows."""
    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x).relu())

    net = Net()
    lacking = c.hook(torch.nn.Module.__call__, type(torch.autograd.Variable._execution_engine).run_backward)
    c.callbacks(*offsets)
    for _ in range(2):
        net(torch.ones(3, 2)).sum().backward()
    rows = c.look()["rows"][:2]
    c.unhook()
    if lacking:
        return str(lacking[0])
    # The call of backward is a row of its own.
    return None if rows == (6, 8) else f"a model with known rows gave {rows}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="kymo-trial-") as recording:
        answer = main(recording)
    with open(f"{sys.argv[1]}.{os.getpid()}", "w", encoding="utf-8") as out:
        out.write(answer + "\n")
    os.replace(out.name, sys.argv[1])
