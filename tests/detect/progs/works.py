"""Programs whose costliest function does one kind of work, as people write it: `works.py KIND [few]`, few: the healthy twin, in which
that work is a small part.

Times are by the clock of the processor: as much work on a busy machine.
"""
import asyncio
import concurrent.futures
import copy
import json
import logging
import multiprocessing
import os
import re
import sys
import tempfile
import threading
import time

KIND = sys.argv[1]
FEW = "few" in sys.argv
WORK_S = 0.05 if FEW else 1.0
WORDS = re.compile(r"^(\w+\s?)*$")
CONFIG = json.dumps({f"key{i}": {"a": list(range(20)), "b": "x" * 40} for i in range(60)})
STATE = {i: {"position": [1, 2, 3], "history": list(range(30))} for i in range(100)}


def compute(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(500))


def repeat(function, *arguments):
    until = time.process_time() + WORK_S
    while time.process_time() < until:
        function(*arguments)


def parse_line(line):
    return bool(WORDS.match(line))


def regex():
    repeat(parse_line, "some words " * 2 + "abcdefgh!")


def get_setting(name):
    for _ in range(20):
        setting = json.loads(CONFIG)[name]
    return setting


def settings():
    repeat(get_setting, "key7")


def remove_duplicates(rows):
    seen = []
    for row in rows:
        if row not in seen:
            seen.append(row)
    return seen


def duplicates():
    repeat(remove_duplicates, list(range(3000)))


def keep_snapshot():
    return copy.deepcopy(STATE)


def snapshots():
    repeat(keep_snapshot)


def price_item(number):
    for rule in range(50):
        logging.debug("pricing item %d by rule %d", number, rule)


def messages():
    with tempfile.TemporaryDirectory() as folder:
        logging.basicConfig(level=logging.DEBUG, filename=f"{folder}/log", format="%(asctime)s %(funcName)s %(message)s")
        repeat(price_item, 7)


def count_rows(batch):
    return len(batch)


def send_batches(pool, batch):
    return sum(pool.map(count_rows, [batch] * 2))


def batches():
    batch = [1] if FEW else {i: [float(j) for j in range(20)] for i in range(20000)}
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for _ in range(40):
            send_batches(pool, batch)


def hash_password():
    compute(0.05)


async def log_in():
    await asyncio.sleep(0.001)
    if not FEW:
        hash_password()


async def serve_logins():
    for _ in range(10):
        await asyncio.gather(log_in(), log_in())


def logins():
    asyncio.run(serve_logins())


def extract_features(seconds):
    """By the clock of the thread, which others do not advance."""
    until = time.thread_time() + seconds
    total = 0
    while time.thread_time() < until:
        for i in range(1000):
            total += i * i % 7
    return total


def threads():
    with concurrent.futures.ThreadPoolExecutor(1 if FEW else 4) as pool:
        list(pool.map(extract_features, [0.05] * 24))


def add_sample(samples, number):
    import numpy
    return numpy.append(samples, number)


def samples():
    import numpy
    repeat(add_sample, numpy.zeros(400_000), 7)


def run_task(number):
    task = threading.Thread(target=abs, args=(number,))
    task.start()
    task.join()


def tasks():
    repeat(run_task, 7)


def render_page(lines):
    page = ""
    for line in lines:
        page = line + page
    return page


def pages():
    repeat(render_page, ["<li>an item of the page</li>\n"] * (300 if FEW else 20_000))


def advance(positions, speeds):
    """Item by item; in the healthy twin with all of large ones at once."""
    if FEW:
        return positions @ speeds
    for i in range(len(positions)):
        positions[i] += 0.1 * speeds[i]
    return positions


def tensors():
    import torch
    torch.set_num_threads(1)
    one = torch.ones(400, 400) if FEW else torch.ones(64)
    until = time.process_time() + 5
    while time.process_time() < until:
        advance(one, one)


def append_record(file):
    os.pwrite(file, b"record", 0)
    os.fsync(file)


def records():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        file = os.open(f"{folder}/journal", os.O_RDWR | os.O_CREAT)
        until = time.monotonic() + (0.05 if FEW else 1.5)
        while time.monotonic() < until:
            append_record(file)
        os.close(file)


if __name__ == "__main__":
    globals()[KIND]()
    compute(1.0 if FEW else 0.1)
