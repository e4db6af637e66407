"""Steps of one kind: `spread` saves a checkpoint now and then, `warmup` compiles in its first step, `even` does neither."""
import sys
import time

import kymo

KIND = sys.argv[1]

for number in range(40):
    kymo.step()
    with kymo.region("work"):
        time.sleep(0.02)
    if KIND == "spread" and number % 8 == 7:
        with kymo.region("save_checkpoint"):
            time.sleep(0.2)
    if KIND == "warmup" and number == 0:
        time.sleep(0.6)
kymo.step_end()
