"""Loops of steps, and programs without them, in which one function is the problem: `loops.py KIND [few]`, few: hardly."""
import gc
import os
import sys
import tempfile
import time

import kymo

KIND = sys.argv[1]
FEW = "few" in sys.argv
STEPS = 40


SECOND = 100_000_000  # range(SECOND) sums up in about a second: a builtin, so that its caller is the function that computes


def forward():
    with kymo.phase("forward"):
        sum(range(int(0.02 * SECOND)))


def write_checkpoint():
    time.sleep(0.01 if FEW else 0.25)


def postprocess():
    sum(range(int((0.001 if FEW else 0.02) * SECOND)))


def compile_model():
    sum(range(int((0.005 if FEW else 0.5) * SECOND)))


def read_shard():
    sum(range(int((0.001 if FEW else 0.03) * SECOND)))


def checkpoint():
    """Every eighth step writes one; no zone says so."""
    for number in range(STEPS):
        kymo.step()
        forward()
        if number % 8 == 7:
            write_checkpoint()
    kymo.step_end()


def between():
    for _ in range(STEPS):
        kymo.step()
        forward()
        postprocess()
    kymo.step_end()


def warmup():
    for number in range(STEPS):
        kymo.step()
        if not number:
            compile_model()
        forward()
    kymo.step_end()


def data():
    for _ in range(STEPS):
        kymo.step()
        with kymo.phase("data"):
            read_shard()
        forward()
    kymo.step_end()


# --- without steps --------------------------------------------------------------------------------------------------

def build_records(count):
    """Objects that live, in cycles: each collection walks all of them."""
    kept = []
    for i in range(count):
        one = {"next": None, "values": [i]}
        one["next"] = one
        kept.append(one)
        if i % 2000 == 0 and not FEW:
            gc.collect()
    return kept


def collections():
    if FEW:
        gc.disable()
    build_records(120_000)
    sum(range(int((1.0 if FEW else 0.3) * SECOND)))


def load_labels(folder, count):
    total = 0
    for i in range(count):
        with open(f"{folder}/{i % 500}", "rb") as file:
            total += len(file.read())
    return total


def files():
    with tempfile.TemporaryDirectory() as folder:
        for i in range(500):
            with open(f"{folder}/{i}", "wb") as file:
                file.write(b"label")
        load_labels(folder, 1000 if FEW else 150_000)
        sum(range(int((1.5 if FEW else 0.3) * SECOND)))


def append_record(file):
    file.write(b"x" * 4096)
    file.flush()
    os.fsync(file.fileno())


def synced():
    """Of the folder that is given: a file in memory is written at once."""
    with open(sys.argv[-1], "wb") as file:
        until = time.monotonic() + 2
        while time.monotonic() < until:
            append_record(file)
            if FEW:
                sum(range(int(0.2 * SECOND)))


kept = []


def remember(size):
    kept.append(bytearray(b"x") * size)


def growing():
    for _ in range(50):
        remember(1000 if FEW else 2_000_000)
        time.sleep(0.05)


{"checkpoint": checkpoint, "between": between, "warmup": warmup, "data": data, "gc": collections, "files": files,
 "sync": synced, "growth": growing}[KIND]()
