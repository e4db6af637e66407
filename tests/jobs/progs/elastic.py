"""A rank that fails once, as torchrun --max-restarts=1 starts it: rank 1 raises in step 13; after the restart steps are slower."""
import os
import time

import torch
import torch.distributed as dist

RESTARTS = os.environ["TORCHELASTIC_RESTART_COUNT"]
AGAIN = RESTARTS != "0"
# torchrun's own store may still have the addresses of the first attempt's ranks after a restart.
dist.init_process_group("gloo", store=dist.FileStore(f"store{RESTARTS}", int(os.environ["WORLD_SIZE"])),
                        rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))


def load_batch(step):
    time.sleep(0.06 if AGAIN else 0.01)
    if dist.get_rank() == 1 and step == 12 and not AGAIN:
        raise RuntimeError("bad sample")


data = torch.ones(256)
for number in range(30):
    load_batch(number)
    dist.all_reduce(data)
    data /= dist.get_world_size()
dist.destroy_process_group()
