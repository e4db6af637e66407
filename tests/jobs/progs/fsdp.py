"""A rank of a job that shards its parameters over all ranks: FSDP on CPU. Rank 1 loads its batches slowly."""
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

LAYERS = 2
torch.set_num_threads(1)
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(LAYERS)])
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def load_batch():
    if dist.get_rank() == 1:
        time.sleep(0.08)
    return torch.ones(8, 64)


for _ in range(15):
    model(load_batch()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
