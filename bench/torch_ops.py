"""What recording torch's operators costs: JSON lines, as bench/bench.h writes them.

    python bench/torch_ops.py [ROUNDS]           with KYMO=on and PYTHONPATH=build/python

Steps of a small transformer, by turns: without, with a callback that gets the inputs and does nothing, with kymo, and with
torch.profiler and shapes. By CPU time; medians. Modules are recorded in all turns, so that the difference is that of
operators. The cost of the default window is the cost of all steps divided by 64.
"""
import ctypes
import json
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import time

import kymo
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
STEPS = 3
WINDOW = 64


def say(key, value):
    print(json.dumps({"key": key, "value": value}))


def page_ops(every):
    binary = pathlib.Path(__file__).resolve().parent.parent / "build/kymo"
    subprocess.run([binary, "config", str(os.getpid()), f"torch_ops={every}"], check=True, capture_output=True)


class Null:
    """A callback for functions and nodes of backward that gets the inputs and returns: what torch itself spends."""

    def __init__(self):
        library = ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "libtorch_cpu.so" in line))
        self.add = library._ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE
        self.off, self.on = library._ZN2at15disableCallbackEm, library._ZN2at16reenableCallbackEm
        self.add.restype = ctypes.c_uint64
        for function in (self.off, self.on):
            function.argtypes = [ctypes.c_uint64]
        # mov qword [rdi], 0; mov rax, rdi; ret: an empty std::unique_ptr; and ret.
        self.code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self.code.write(bytes.fromhex("48c70700000000" "4889f8" "c3" "c3"))
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.code))

        class Callback(ctypes.Structure):
            _fields_ = [("start", ctypes.c_uint64), ("end", ctypes.c_uint64), ("sampling", ctypes.c_double),
                        ("scopes", ctypes.c_uint8 * 40)]

        scopes = [0] * 40
        scopes[0] = scopes[1] = scopes[10] = 1
        self.add.argtypes = [Callback]
        self.handle = self.add(Callback(start, start + 11, 1.0, (ctypes.c_uint8 * 40)(*scopes)))
        self.off(self.handle)


def cpu(steps):
    start = time.thread_time_ns()
    steps()
    return (time.thread_time_ns() - start) / STEPS


def main(rounds):
    from torch_step import Gpt

    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = Gpt()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    words = torch.randint(0, 64, (4, 32))

    def step():
        optimizer.zero_grad()
        net(words).sum().backward()
        optimizer.step()

    def steps():
        for _ in range(STEPS):
            step()

    def profiled():
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_flops=True):
            step()  # its start and end are not part of the figure
            profiled.cost = cpu(steps)

    kymo.enable_torch_profiling()
    from kymo import _torch_auto

    c = _torch_auto.extension()
    page_ops("all")
    step()
    before = c.look()["operators"]
    step()
    operators = c.look()["operators"] - before
    null, found = Null(), []
    for _ in range(rounds):
        page_ops("off")
        step()
        plain = cpu(steps)
        null.on(null.handle)
        step()
        nothing = cpu(steps)
        null.off(null.handle)
        page_ops("all")
        step()
        ours = cpu(steps)
        page_ops("off")
        profiled()
        found.append((plain, nothing - plain, ours - plain, profiled.cost - plain))
    plain, nothing, ours, theirs = (statistics.median(column) for column in zip(*found))
    say("torch.ops.count", operators)
    say("torch.ops.step_ms", plain / 1e6)
    say("torch.ops.null", nothing / operators)
    say("torch.ops.each", ours / operators)
    say("torch.ops.more", (ours - nothing) / operators)
    say("torch.ops.of_profiler", ours / theirs)
    say("torch.ops.profiler", theirs / operators)
    say("torch.ops.window", 100 * ours / plain / WINDOW)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
