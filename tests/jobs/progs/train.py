"""A rank of a job with gloo, as torchrun or srun starts it: `train.py KIND [STEPS [MS]]`. even: no rank is late; sleep: rank 1
sleeps before each collective; data: rank 1 reads its data slowly; killed: rank 1 is killed; absent: rank 1 stops taking part;
busy: rank 1 shares its core with others; size: rank 1 reduces another number of elements once."""
import os
import signal
import subprocess
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


def compute(seconds):
    """So much time of the processor."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def share_core():
    """Rank 1 alone with three loops on one core, the other ranks on another."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[0] if RANK == 1 else cores[1]})
    loop = "while [ -d /proc/$PPID ]; do :; done"
    return [subprocess.Popen(["sh", "-c", loop]) for _ in range(3 if RANK == 1 else 0)]


def wait_for_file():
    while True:
        time.sleep(0.2)


data = torch.ones(256)
loops = share_core() if KIND == "busy" else []
for step in range(STEPS):
    if RANK == 1 and KIND == "data":
        data = fetch_shard(step)
    if RANK == 1 and KIND == "sleep":
        pause()
    if RANK == 1 and step == 15 and KIND == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if RANK == 1 and step == 15 and KIND == "absent":
        wait_for_file()
    if KIND == "busy":
        compute(0.02)
    time.sleep(WORK)  # work that all ranks have
    dist.all_reduce(data[:128] if RANK == 1 and step == 12 and KIND == "size" else data)
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
for loop in loops:
    loop.kill()
dist.destroy_process_group()
