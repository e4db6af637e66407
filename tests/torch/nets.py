"""Nets that training tools are known to break, each trained without kymo, with it, and without it again, in one process.

    python nets.py            all but compile and ddp; prints one JSON object: name → [losses, losses, losses]
    python nets.py compile    the compiled one, with what torch._dynamo counted
    python nets.py ddp RANK PORT [recorded]

Losses are printed as hex floats: equal means equal to the last bit.
"""
import contextlib
import gc
import json
import os
import sys
import warnings

import kymo
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

STEPS = 50


class Block(nn.Module):
    """In-place activations and a residual +=, which full backward hooks cannot bear."""

    def __init__(self, width):
        super().__init__()
        self.one = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.two = nn.Conv2d(width, width, 3, padding=1, bias=False)

    def forward(self, x):
        out = self.two(self.relu(self.norm(self.one(x))))
        out += x
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.blocks = nn.Sequential(Block(4), Block(4))
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.reentrant = reentrant
        self.parts = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.2), nn.Tanh()) for _ in range(3))
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = x.clone().requires_grad_()
        for part in self.parts:
            x = checkpoint(part, x, use_reentrant=self.reentrant)
        return self.head(x)


class Nested(nn.Module):
    """Returns a dict of tensors and nested tuples, and has a part that it uses twice."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(8, 8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        first = self.shared(x)
        second = self.shared(first.relu_())
        return {"out": self.head(second), "more": ((first, None), [second, "text"])}


class Raising(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 5)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = self.inner(x)
        if self.calls % 3 == 0:
            raise ArithmeticError("every third time")
        return y


def with_hooks():
    """Hooks of the user's own, which change what passes through."""
    net = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 5))
    net[0].register_forward_hook(lambda module, args, out: out * 1.01)
    net[1].register_forward_pre_hook(lambda module, args: (args[0] + 0.01,))
    net[2].register_full_backward_hook(lambda module, grad_in, grad_out: tuple(g * 0.5 for g in grad_in))
    return net


def train(net, inputs, read=lambda out: out, step_context=contextlib.nullcontext):
    target = torch.arange(len(inputs)) % 5
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        try:
            with step_context():
                loss = criterion(read(net(inputs)), target)
        except ArithmeticError:
            losses.append("raised")
            continue
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    return losses


def images():
    return torch.randn(4, 3, 8, 8)


def vectors():
    return torch.randn(6, 8)


def with_workers():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(STEPS * 2, 8), torch.arange(STEPS * 2) % 5)
    net, losses = nn.Linear(8, 5), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in DataLoader(data, batch_size=2, shuffle=True, num_workers=2):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    return losses


NETS = {
    "resnet": lambda: train(ResNet(), images()),
    "transformer": lambda: train(Transformer(), torch.randn(4, 6, 16)),
    "checkpoint": lambda: train(Checkpointed(False), vectors()),
    "checkpoint_reentrant": lambda: train(Checkpointed(True), vectors()),
    "amp": lambda: train(ResNet(), images(), step_context=lambda: torch.autocast("cpu", dtype=torch.bfloat16)),
    "workers": with_workers,
    "nested": lambda: train(Nested(), vectors(), read=lambda out: out["out"]),
    "raising": lambda: train(Raising(), vectors()),
    "hooks": lambda: train(with_hooks(), vectors()),
}


def once(name):
    torch.manual_seed(7)
    return NETS[name]()


def thrice(act):
    without = act()
    kymo.enable_torch_profiling()
    recorded = act()
    kymo.disable_torch_profiling()
    return [without, recorded, act()]


def compiled():
    """Losses, and what dynamo counted: graph breaks, recompilations, and warnings."""
    def act():
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        torch.manual_seed(7)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 5))
            losses = train(torch.compile(net), vectors())
        counters = {key: dict(value) for key, value in torch._dynamo.utils.counters.items()
                    if value and key in ("stats", "graph_break", "recompiles", "frames", "unimplemented")}
        return {"losses": losses, "counters": counters, "warnings": sorted({str(w.message) for w in caught})}

    act()  # the first of a process warns of what torch itself does
    return thrice(act)


def ranked(rank, port, recorded):
    os.environ.update(RANK=rank, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port, GLOO_SOCKET_IFNAME="lo")
    torch.distributed.init_process_group("gloo")
    if recorded:
        kymo.enable_torch_profiling()
    torch.manual_seed(7)
    net = nn.parallel.DistributedDataParallel(ResNet())
    torch.manual_seed(int(rank))
    losses = train(net, images())
    # A thread of gloo that lets go of its last message while the interpreter ends aborts the process (torch 2.13, recorded or
    # not: the message holds a Python object). Without the model nothing holds the group, and its threads are joined here.
    del net
    gc.collect()
    torch.distributed.destroy_process_group()
    return losses


if __name__ == "__main__":
    torch.set_num_threads(1)
    word = sys.argv[1] if len(sys.argv) > 1 else "all"
    if word == "compile":
        answer = compiled()
    elif word == "ddp":
        answer = ranked(sys.argv[2], sys.argv[3], "recorded" in sys.argv)
    else:
        answer = {name: thrice(lambda name=name: once(name)) for name in NETS}
    print(json.dumps(answer))
