"""Learns to tell shapes apart in noisy pictures.

    kymo run --python --skip 0 --device -- python examples/pictures/train.py

This program does not use kymo: no import, no marks. The model waits while its pictures are drawn, which the report of the
run shows. On a slow machine it stops early.
"""
import argparse
import time
from collections import OrderedDict

import pictures
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def load(numbers):
    clean, shapes = pictures.load_batch(numbers)
    return torch.frombuffer(clean, dtype=torch.float32).view(-1, 1, pictures.SIDE, pictures.SIDE), torch.tensor(shapes)


class Edges(nn.Module):
    """Beside each picture its edges, which the plugin finds."""

    def forward(self, x):
        edges = torch.empty_like(x)
        pictures.filters.edges(x.data_ptr(), edges.data_ptr(), len(x), pictures.SIDE)
        return torch.cat([x, edges], dim=1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(OrderedDict(edges=Edges(), conv=nn.Conv2d(2, 8, 3, padding=1), act=nn.ReLU()))
        self.body = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4))
        self.head = nn.Linear(16 * (pictures.SIDE // 8) ** 2, len(pictures.SHAPES))

    def forward(self, x):
        return self.head(self.body(self.stem(x)).flatten(1))


def train_step(model, optimizer, images, shapes):
    answer = model(images)
    loss = F.cross_entropy(answer, shapes)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item(), (answer.argmax(1) == shapes).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description="Learns to tell shapes apart in noisy pictures.")
    parser.add_argument("--steps", type=int, default=300, help="at most so many (300)")
    parser.add_argument("--seconds", type=float, default=20, help="stop after so long (20)")
    options = parser.parse_args()

    torch.manual_seed(1)
    torch.set_num_threads(1)  # for a model as small as this, two threads wait for each other more than they work
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    device = pictures.filters.device_name().decode()
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters; filters on {device:.44}", flush=True)
    loader = DataLoader(range(options.steps * pictures.BATCH), batch_size=pictures.BATCH, collate_fn=load)
    began = time.monotonic()
    for step, (images, shapes) in enumerate(loader, 1):
        loss, right = train_step(model, optimizer, images, shapes)
        last = step == options.steps or time.monotonic() - began > options.seconds
        if last or step % 100 == 0:
            print(f"step {step:4}   loss {loss:.3f}   right {100 * right:3.0f} %", flush=True)
        if last:
            break


if __name__ == "__main__":
    main()
