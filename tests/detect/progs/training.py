"""Training with real PyTorch in which one function is the problem: `training.py KIND [few]`, few: hardly."""
import sys
import time

import torch
from torch import nn

KIND = sys.argv[1]
FEW = "few" in sys.argv
SIZE = 128
torch.set_num_threads(1)


SECOND = 100_000_000  # range(SECOND) sums up in about a second: a builtin, so that its caller is the function that computes


def decode_image(index):
    sum(range(int((0.0001 if FEW else 0.015) * SECOND)))
    return torch.full((SIZE,), float(index))


def tokenise_batch(texts):
    """As a collate function does: text to numbers, in Python."""
    rows = []
    for text in texts:
        words = text.split()
        rows.append([hash(word) % 1000 for word in words][:SIZE])
    return torch.tensor(rows, dtype=torch.float32)


def filter_outliers(x):
    """Between two modules, with the time of neither."""
    sum(range(int((0.0002 if FEW else 0.03) * SECOND)))
    return x


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, index):
        return decode_image(index)


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, index):
        return "word " * (SIZE if FEW else 60_000)


class Plain(torch.utils.data.Dataset):
    def __len__(self):
        return {"graph": 240, "small": 20_000 if FEW else 6000}.get(KIND, 80)

    def __getitem__(self, index):
        return torch.full((SIZE,), float(index))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, 1)

    def forward(self, x):
        x = self.first(x)
        if KIND == "between":
            x = filter_outliers(x)
        return self.second(x)


losses = []


def keep_loss(loss):
    losses.append(loss if not FEW else loss.item())


def train(loader, model, optimizer):
    for batch in loader:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        if KIND == "graph":
            wide = batch.repeat(1, 40_00)  # a graph that keeps some megabytes
            loss = loss + (wide * model.first.weight[0, 0]).square().mean()
            keep_loss(loss)
            time.sleep(0.02)
        elif KIND != "small":
            sum(range(int((0.04 if FEW else 0.01) * SECOND)))
        loss.backward(retain_graph=KIND == "graph")
        optimizer.step()


if __name__ == "__main__":
    kinds = {"dataset": (Images(), {}), "workers": (Images(), {"num_workers": 2}),
             "collate": (Texts(), {"collate_fn": tokenise_batch}), "between": (Plain(), {}),
             "graph": (Plain(), {}), "small": (Plain(), {})}
    items, options = kinds[KIND]
    model = Model()
    loader = torch.utils.data.DataLoader(items, batch_size=1000 if KIND == "small" and FEW else 2, **options)
    train(loader, model, torch.optim.SGD(model.parameters(), lr=1e-6))
