# From step 12 on, 3.1 MB of each step are kept.
import kymo
kept = []
def load(i):
    return bytearray(3_100_000) if i >= 12 else None
for i in range(40):
    kymo.step()
    kept.append(load(i))
    junk = bytearray(2_000_000)
kymo.step_end()
