"""Programs in which one function is the problem, as people write them: `findings.py KIND [few]`, few: the healthy twin."""
import concurrent.futures
import dataclasses
import multiprocessing
import socket
import subprocess
import sys
import time

KIND = sys.argv[1]
FEW = "few" in sys.argv
ITEMS = 10


def compute(seconds):
    """By the clock of the processor: as much work on a busy machine."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(500))


# --- short programs --------------------------------------------------------------------------------------------------

def parse_lines():
    compute(0.02 if FEW else 0.15)


def short():
    parse_lines()


# --- memory ----------------------------------------------------------------------------------------------------------

history = []


def remember_batch(number):
    """A sixth of the time, all of the memory."""
    block = bytearray(b"x") * 3_000_000
    history[0 if FEW else number:] = [block]


def train_batch():
    compute(0.007)


def leak():
    for number in range(200):
        remember_batch(number)
        train_batch()


# --- workers ---------------------------------------------------------------------------------------------------------

def download_page(number):
    compute(0.1 if FEW else 0.005)
    time.sleep(0.005 if FEW else 0.5)
    return number


def resize_image(number):
    compute(0.002 if FEW else 0.25)
    return number


def pool():
    with multiprocessing.get_context("fork").Pool(2) as workers:
        print(sum(workers.imap_unordered(download_page, range(ITEMS))))


def spawned():
    with multiprocessing.get_context("spawn").Pool(2) as workers:
        print(sum(workers.map(download_page, range(ITEMS))))


def executor():
    with concurrent.futures.ProcessPoolExecutor(2) as workers:
        print(sum(workers.map(resize_image, range(ITEMS))))
    time.sleep(2 if FEW else 0)


# --- code without a file ---------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Point:
    """Its __init__ is in <string>."""
    x: int
    y: int
    z: int = 0


def build_points(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        [Point(i, i) for i in range(300)]


def generated():
    build_points(0.02 if FEW else 1.2)
    time.sleep(1.2 if FEW else 0)


# --- ranks -----------------------------------------------------------------------------------------------------------

def load_shard(rank):
    if rank == 1 and not FEW:
        time.sleep(0.1)


def ddp():
    """Two ranks that train with DDP; of one the data is slow, so that the other waits in backward. No launcher has set RANK."""
    if len(sys.argv) < 4:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        jobs = [subprocess.Popen([sys.executable, *sys.argv[:2], "few" if FEW else "many", str(rank), str(port)]) for rank in range(2)]
        sys.exit(max(job.wait() for job in jobs))
    rank, port = map(int, sys.argv[3:5])
    import torch
    import torch.distributed
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(15):
        load_shard(rank)
        optimizer.zero_grad()
        model(torch.randn(8, 64)).sum().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    globals()[KIND]()
