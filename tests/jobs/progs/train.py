"""A rank of a job with gloo, as torchrun or srun starts it: `train.py KIND [STEPS [MS]]`. even: no rank is late; sleep: rank 1
sleeps before each collective; data: rank 1 reads its data slowly; killed: rank 1 is killed; absent: rank 1 stops taking part."""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

KIND = sys.argv[1]
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 25
WORK = float(sys.argv[3]) / 1000 if len(sys.argv) > 3 else 0.01
torch.set_num_threads(1)
dist.init_process_group("gloo")
RANK = dist.get_rank()
pairs = [dist.new_group([first, first + 1]) for first in range(0, dist.get_world_size() - 1, 2)]


def fetch_shard(step):
    """Slow data: read piece by piece."""
    for _ in range(4):
        time.sleep(0.02)
    return torch.full((256,), float(step))


def pause():
    time.sleep(0.08)


def wait_for_file():
    while True:
        time.sleep(0.2)


data = torch.ones(256)
for step in range(STEPS):
    if RANK == 1 and KIND == "data":
        data = fetch_shard(step)
    if RANK == 1 and KIND == "sleep":
        pause()
    if RANK == 1 and step == 15 and KIND == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if RANK == 1 and step == 15 and KIND == "absent":
        wait_for_file()
    time.sleep(WORK)  # work that all ranks have
    dist.all_reduce(data)
    data /= dist.get_world_size()
    if step == 3 and RANK < 2:
        dist.broadcast(data, 0, group=pairs[0])
    if step == 4 and RANK == 0:
        dist.send(data, 1)
    if step == 4 and RANK == 1:
        dist.recv(data, 0)
    if step == 5 and RANK == 0:
        dist.send(data, 1, tag=1)
    if step == 5 and RANK == 1:
        dist.recv(data, tag=1)  # of any rank
dist.destroy_process_group()
