"""Training with a loader that is slow, or with a model of which one module does nearly everything."""
import sys
import time

import torch
from torch import nn

SLOW_LOADER = sys.argv[1] == "loader"
SIZE = 256
torch.set_num_threads(1)


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        time.sleep(0.01 if SLOW_LOADER else 0)
        return torch.randn(SIZE)


class Prepared(nn.Linear):
    """Its first call takes longer than all others of the model together, as libraries that are loaded and tuned by it do."""
    ready = SLOW_LOADER

    def forward(self, x):
        time.sleep(0 if self.ready else 3)
        self.ready = True
        return super().forward(x)


wide = [] if SLOW_LOADER else [nn.Sequential(nn.Linear(SIZE, 20_000), nn.Linear(20_000, SIZE))]
model = nn.Sequential(Prepared(SIZE, SIZE), *[nn.Linear(SIZE, SIZE) for _ in range(9)], *wide)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for batch in torch.utils.data.DataLoader(Items(), batch_size=2):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
