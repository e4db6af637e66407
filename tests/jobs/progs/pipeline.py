"""A rank of two pipelines of two stages, 0 to 1 and 2 to 3; ranks of a stage share gradients: (0, 2) and (1, 3). Rank 2 reads its data
slowly, so that rank 3 receives late and comes late to its own group."""
import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
RANK = dist.get_rank()
stages = [dist.new_group([0, 2]), dist.new_group([1, 3])]


def fetch_shard():
    time.sleep(0.08)
    return torch.ones(256)


def forward(data):
    time.sleep(0.005)
    return data


for _ in range(25):
    batch = fetch_shard() if RANK == 2 else torch.ones(256)
    if RANK % 2 == 0:
        dist.send(forward(batch), RANK + 1)
    else:
        dist.recv(batch, RANK - 1)
        forward(batch)
    dist.all_reduce(batch, group=stages[RANK % 2])
dist.destroy_process_group()
