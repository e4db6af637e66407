"""Two ranks of a job with PyTorch's gloo, as torchrun starts them: `ddp.py late` has one that is slow, `ddp.py even` none, and
in `ddp.py absent SECONDS` one never takes part in a collective operation, and the job is killed after that time."""
import os
import signal
import socket
import subprocess
import sys
import time

KIND = sys.argv[1]
SECOND = 100_000_000

if "RANK" not in os.environ:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    jobs = [subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2",
                                                               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
                             stdout=subprocess.PIPE if rank else None)
            for rank in range(2)]
    if KIND == "absent":
        jobs[1].stdout.readline()
        time.sleep(float(sys.argv[2]))
        for job in jobs:
            job.kill()
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(max(job.wait() for job in jobs))

import torch  # noqa: E402 - only in the ranks
import torch.distributed as dist  # noqa: E402

import kymo  # noqa: E402

torch.set_num_threads(1)
RANK = int(os.environ["RANK"])


def augment_images():
    if RANK == 1 and KIND == "late":
        sum(range(int(0.06 * SECOND)))


def forward():
    with kymo.phase("forward"):
        sum(range(int(0.02 * SECOND)))
        augment_images()


def average_gradients(tensor):
    dist.all_reduce(tensor)


def wait_for_file():
    print("absent", flush=True)
    while True:
        time.sleep(0.5)


dist.init_process_group("gloo")
for step in range(3 if KIND == "absent" else 15):
    kymo.step()
    forward()
    if KIND == "absent" and RANK == 1 and step == 2:
        wait_for_file()
    average_gradients(torch.ones(8))
kymo.step_end()
dist.destroy_process_group()
