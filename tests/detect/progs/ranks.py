"""Two ranks of one job, as torchrun would start them; rank 1 is late or not."""
import os
import subprocess
import sys
import time

LATE = sys.argv[1] == "late"

if "RANK" not in os.environ:
    jobs = [subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"})
            for rank in range(2)]
    sys.exit(max(job.wait() for job in jobs))

import kymo  # noqa: E402 - only the ranks record

for _ in range(15):
    kymo.step()
    with kymo.phase("forward"):
        time.sleep(0.12 if LATE and os.environ["RANK"] == "1" else 0.04)
kymo.step_end()
