"""What recording a collective costs the thread that calls it: a JSON line, as bench/bench.h writes them.

    python bench/collectives.py [ROUNDS]         with KYMO=on and PYTHONPATH=build/python

Asynchronous all_reduce of a group of one rank with gloo; the ends are waited for outside of what is measured. By turns with
kymo on and off; CPU time of the calling thread; median of the differences.
"""
import json
import os
import statistics
import sys
import time

import kymo
import torch
import torch.distributed as dist

CALLS = 200

torch.set_num_threads(1)
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
kymo.enable_torch_profiling()
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
data = [torch.ones(256) for _ in range(CALLS)]


def calls():
    """CPU time of a call on this thread, in ns."""
    work = []
    begin = time.thread_time_ns()
    for one in data:
        work.append(dist.all_reduce(one, async_op=True))
    took = time.thread_time_ns() - begin
    for one in work:
        one.wait()
    return took / CALLS


for _ in range(20):
    calls()
differences = []
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
    recorded = calls()
    kymo.disable()
    differences.append(recorded - calls())
    kymo.enable()
print(json.dumps({"key": "jobs.collective", "value": statistics.median(differences)}))
dist.destroy_process_group()
