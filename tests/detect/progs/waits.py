"""Programs that wait, each for one thing, in a function of its own; `compute` waits for nothing.

    waits.py KIND [part]    part: of the work of one round that is a wait, 1 by default; 0.05 is the healthy twin
"""
import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

KIND = sys.argv[1]
PART = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
ROUNDS, ROUND_S = 12, 0.2
WAIT_S, WORK_S = ROUND_S * PART, ROUND_S * (1 - PART) + 0.02


def compute(seconds):
    """Work by the clock of the processor: as much of it on a busy machine."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(i * i for i in range(500))


# --- the other sides ------------------------------------------------------------------------------------------------

def serve_slowly(server):
    connection, _ = server.accept()
    while connection.recv(16):
        time.sleep(WAIT_S)
        connection.sendall(b"answer")


class Slow(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(WAIT_S)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


def in_child(target, *arguments):
    """Another process that is not part of what is measured: it has its own stacks."""
    pid = os.fork()
    if not pid:
        try:
            target(*arguments)
        finally:
            os._exit(0)
    return pid


# --- waits ----------------------------------------------------------------------------------------------------------

def poll_status():
    time.sleep(WAIT_S)


def ask_backend(connection):
    connection.sendall(b"question")
    connection.recv(16)


def fetch_page(url):
    with urllib.request.urlopen(url) as answer:
        answer.read()


def convert_file():
    subprocess.run(["sleep", str(WAIT_S)], check=True)


def file_size(path):
    """A process for each file."""
    return int(subprocess.run(["stat", "-c", "%s", path], capture_output=True, check=True).stdout)


def read_results(stream):
    stream.readline()


def append_record(file):
    file.write(b"x" * 4096)
    os.fsync(file.fileno())


def sleeping():
    for _ in range(ROUNDS):
        poll_status()
        compute(WORK_S)


def backend():
    server = socket.create_server(("127.0.0.1", 0))
    address = server.getsockname()
    in_child(serve_slowly, server)
    server.close()
    with socket.create_connection(address) as connection:
        print(f"{address[0]}:{address[1]}")
        for _ in range(ROUNDS):
            ask_backend(connection)
            compute(WORK_S)


def http():
    server = HTTPServer(("127.0.0.1", 0), Slow)
    pid = in_child(server.serve_forever)
    server.socket.close()
    print(f"127.0.0.1:{server.server_port}")
    for _ in range(ROUNDS):
        fetch_page(f"http://127.0.0.1:{server.server_port}/")
        compute(WORK_S)
    os.kill(pid, 9)


async def ask_one_after_another(address):
    """The thread waits in its loop, at one line for the whole time."""
    for _ in range(ROUNDS):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"question")
        await reader.read(16)
        writer.close()
        compute(WORK_S)


def serve_each_slowly(server):
    while True:
        connection, _ = server.accept()
        with connection:
            connection.recv(16)
            time.sleep(WAIT_S)
            connection.sendall(b"answer")


def awaits():
    server = socket.create_server(("127.0.0.1", 0))
    address = server.getsockname()
    pid = in_child(serve_each_slowly, server)
    server.close()
    print(f"{address[0]}:{address[1]}")
    asyncio.run(ask_one_after_another(address))
    os.kill(pid, 9)


def child():
    for _ in range(ROUNDS):
        convert_file()
        compute(WORK_S)


def children():
    until = time.monotonic() + 2
    while time.monotonic() < until:
        file_size(__file__)


def pipe():
    text = f"for i in {' '.join(map(str, range(ROUNDS)))}; do sleep {WAIT_S}; echo $i; done"
    with subprocess.Popen(["sh", "-c", text], stdout=subprocess.PIPE) as other:
        for _ in range(ROUNDS):
            read_results(other.stdout)
            compute(WORK_S)


# --- locks ----------------------------------------------------------------------------------------------------------

lock = threading.Lock()


def rebuild_index(stop):
    while not stop.is_set():
        with lock:
            time.sleep(WAIT_S)
        time.sleep(0.002)


def update_cache():
    with lock:
        pass


def locked():
    stop = threading.Event()
    other = threading.Thread(target=rebuild_index, args=(stop,), name="indexer")
    other.start()
    for _ in range(ROUNDS):
        update_cache()
        compute(WORK_S)
    stop.set()
    other.join()


price_lock = threading.Lock()


def read_price(item):
    time.sleep(WAIT_S / 4)
    return item * 2


def look_up_price(item):
    with price_lock:
        return read_price(item)


def priced():
    """Workers of a pool, which share a lock."""
    with ThreadPoolExecutor(4) as pool:
        for _ in range(ROUNDS):
            list(pool.map(look_up_price, range(4)))
            compute(WORK_S)


def produce_items(queue):
    for i in range(ROUNDS):
        time.sleep(WAIT_S)
        queue.put(i)


def queued():
    import queue
    items = queue.Queue()
    other = threading.Thread(target=produce_items, args=(items,), name="producer")
    other.start()
    for _ in range(ROUNDS):
        items.get()
        compute(WORK_S)
    other.join()


{"sleep": sleeping, "socket": backend, "awaits": awaits, "http": http, "child": child, "children": children,
 "pipe": pipe, "lock": locked, "pool": priced, "queue": queued}[KIND]()
