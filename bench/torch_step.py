"""What recording torch's modules costs: JSON lines, as bench/bench.h writes them.

    python bench/torch_step.py [ROUNDS]          with KYMO_WATCH in the environment: what watching costs, instead

By events: a module's forward and backward with and without, on modules that do next to nothing, times the modules of a
step. By the wall clock: steps of a small transformer, off and on by turns in short slices; the median of the slices' differences
with a 95 % interval by resampling, and the same for off against off; and by the processor's time, which other programs on
the machine disturb less.
"""
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import time

import kymo
import torch
from torch import nn

CHAIN = 200
STEPS = 3  # in a slice
SAMPLED_STEPS = 12  # of a slice that is sampled: some 250 ms, every 100 ms
KYMO = pathlib.Path(__file__).resolve().parent.parent / "build/kymo"


def say(key, value):
    print(json.dumps({"key": key, "value": value}))


# --- by events ------------------------------------------------------------------------------------------------

class Pass(nn.Module):
    def forward(self, x):
        return x + 1


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(Pass() for _ in range(CHAIN))

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


def chain_times(chain, rounds=15):
    """Seconds of a forward and of a backward through it: the fastest, since only our own cost is looked for."""
    forward, backward = [], []
    x = torch.ones(1, requires_grad=True)
    for _ in range(rounds):
        a = time.perf_counter()
        y = chain(x)
        b = time.perf_counter()
        y.backward()
        forward.append(b - a)
        backward.append(time.perf_counter() - b)
    return statistics.median(sorted(forward)[:5]), statistics.median(sorted(backward)[:5])


class PythonHooks:
    """The same by torch's own hooks, each reading the clock and keeping a row."""

    def __init__(self):
        self.rows, self.begun, self.handles = [], [], []

    def before(self, module, *rest):
        self.begun.append(time.perf_counter_ns())

    def after(self, module, *rest):
        self.rows.append((module, self.begun.pop(), time.perf_counter_ns()))

    def enter(self, root):
        for module in root.modules():
            self.handles += [module.register_forward_pre_hook(self.before), module.register_forward_hook(self.after),
                             module.register_full_backward_pre_hook(self.before),
                             module.register_full_backward_hook(self.after)]

    def leave(self):
        for handle in self.handles:
            handle.remove()
        self.handles, self.rows, self.begun = [], [], []


def switch(on):
    (kymo.enable_torch_profiling if on else kymo.disable_torch_profiling)()


def page_off(off):
    """As `kymo config` does: the hooks stay, and pass on."""
    import mmap
    import struct

    with open(pathlib.Path(kymo.directory()) / "control", "r+b") as file, mmap.mmap(file.fileno(), 0) as page:
        word = struct.unpack_from("<I", page, 16)[0]
        struct.pack_into("<I", page, 16, word & ~4 if off else word | 4)


def events():
    chain, hooks, found = Chain(), PythonHooks(), []
    for _ in range(9):
        plain = chain_times(chain)
        switch(True)
        ours = chain_times(chain)
        page_off(True)
        idle = chain_times(chain)
        page_off(False)
        switch(False)
        hooks.enter(chain)
        theirs = chain_times(chain)
        hooks.leave()
        found.append([(times[i] - plain[i]) / (CHAIN + 1) * 1e9 for times in (ours, idle, theirs) for i in (0, 1)])
    forward, backward, idle_forward, idle_backward, hook_forward, hook_backward = (
        statistics.median(column) for column in zip(*found))
    say("torch.event.forward", forward)
    say("torch.event.backward", backward)
    say("torch.event.idle", max(idle_forward + idle_backward, 0))
    say("torch.event.hooks", hook_forward + hook_backward)
    say("torch.event.of_hooks", (forward + backward) / (hook_forward + hook_backward))
    return forward + backward, max(idle_forward + idle_backward, 0)


# --- by the wall clock --------------------------------------------------------------------------------------------

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                         .transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm_b(x))


class Gpt(nn.Module):
    def __init__(self, width=96, depth=7, heads=4, words=64):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Training:
    def __init__(self):
        self.net = Gpt()
        self.optimizer = torch.optim.AdamW(self.net.parameters())
        self.x = torch.randint(0, 64, (4, 32))

    def train_step(self):
        logits = self.net(self.x)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), self.x.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def slice(self, steps=STEPS, step=None):
        """Seconds of a step, by the wall clock and of the processor. The first one is not counted: what it costs to turn recording
        on or off is not what it costs to record."""
        step = step or self.train_step
        step()
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(steps):
            step()
        return (time.perf_counter() - wall) / steps, (time.process_time() - processor) / steps

    def marked_step(self):
        kymo.step()
        with kymo.region("train_step"):
            self.train_step()

    def long_slice(self):
        return self.slice(SAMPLED_STEPS)

    def marked_slice(self):
        return self.slice(SAMPLED_STEPS, self.marked_step)


class Sampler:
    """`kymo attach` to this very process, held but for the slices that are to be sampled."""

    def __enter__(self):
        self.process = subprocess.Popen([KYMO, "attach", str(os.getpid())], env={**os.environ, "KYMO_QUIET": "1"})
        time.sleep(1)
        self.hold()
        return self

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def hold(self):
        self.process.send_signal(signal.SIGSTOP)

    def __exit__(self, *error):
        self.go_on()
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def interval(differences):
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(differences, k=len(differences))) for _ in range(2000))
    return statistics.median(differences), medians[50], medians[1949]


def by_turns(modes, rounds):
    """Of each mode the differences in percent, (wall, processor) each; and what a step takes without any."""
    times, off = {mode: [] for mode in modes}, []
    for i in range(rounds):
        for mode, (begin, run, end, run_without) in modes.items():
            pair = {}
            for recorded in ((False, True) if i % 2 else (True, False)):
                if recorded:
                    begin()
                pair[recorded] = (run if recorded else run_without)()
                if recorded:
                    end()
            off.append(pair[False][1])
            times[mode].append([(on - off) / off * 100 for on, off in zip(pair[True], pair[False])])
    return times, off


def wall(rounds, event_ns, idle_ns):
    training = Training()
    for _ in range(3):
        training.slice()
    # Name: begins, what runs then, ends, what runs without it.
    full = (lambda: switch(True), training.slice, lambda: switch(False), training.slice)
    with Sampler() as sampler:
        modes = {"watch": full} if "KYMO_WATCH" in os.environ else {
            "full": full,
            "again": (lambda: None, training.slice, lambda: None, training.slice),
            "regions": (sampler.go_on, training.marked_slice, sampler.hold, training.long_slice)}
        times, off = by_turns(modes, rounds)
    step = statistics.median(off)
    for mode in modes:
        for i, clock in enumerate(("wall", "cpu")):
            for name, value in zip((clock, f"{clock}.low", f"{clock}.high"), interval([t[i] for t in times[mode]])):
                say(f"torch.{mode}.{name}", value)
    if "watch" in modes:
        return
    modules = sum(not isinstance(module, nn.ModuleList) for module in training.net.modules())
    say("torch.step_ms", step * 1e3)
    say("torch.modules", modules)
    say("torch.full.events", modules * event_ns / (step * 1e9) * 100)
    say("torch.idle.events", modules * idle_ns / (step * 1e9) * 100)


if __name__ == "__main__":
    torch.set_num_threads(1)
    kymo.enable()
    wall_rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    wall(wall_rounds, *((0, 0) if "KYMO_WATCH" in os.environ else events()))
