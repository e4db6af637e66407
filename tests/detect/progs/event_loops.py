"""Event loops with one blocking call each, and the same work done as it should be.

    event_loops.py sleep|socket|cpu|json|lock|server|executor|awaiting [uvloop]
"""
import asyncio
import json
import socket
import sys
import threading
import time

ROUNDS = 12
BLOCK = 0.06


def query_database():
    time.sleep(BLOCK)


def fetch_page(address):
    with socket.create_connection(address) as connection:
        while connection.recv(65536):
            pass


def render_report():
    until = time.thread_time() + BLOCK
    total = 0
    while time.thread_time() < until:
        for i in range(1000):
            total += i * i
    return total


def encode_body():
    return json.dumps(BODY, indent=1)


def update_cache():
    with LOCK:
        pass


BODY = [{"id": i, "name": "x" * 20, "tags": ["a", "b", str(i)]} for i in range(24000)]
LOCK = threading.Lock()


def serve_slowly(listener):
    """Another program: it answers after a while."""
    while True:
        connection, _ = listener.accept()
        with connection:
            time.sleep(BLOCK)
            connection.sendall(b"done")


def hold_lock():
    while True:
        with LOCK:
            time.sleep(BLOCK)
        time.sleep(0.002)


def prepare(mode):
    """What the coroutine calls."""
    if mode == "socket":
        listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=serve_slowly, args=(listener,), daemon=True).start()
        return lambda: fetch_page(listener.getsockname())
    if mode == "lock":
        threading.Thread(target=hold_lock, daemon=True).start()
        return update_cache
    return {"cpu": render_report, "json": encode_body}.get(mode, query_database)


async def beat(stop):
    while not stop.is_set():
        await asyncio.sleep(0.002)


async def blocked(work):
    for _ in range(ROUNDS):
        work()
        await asyncio.sleep(0.002)


async def in_a_thread(work):
    for _ in range(ROUNDS):
        await asyncio.get_running_loop().run_in_executor(None, work)


async def awaiting():
    for _ in range(ROUNDS):
        await asyncio.gather(*(asyncio.sleep(BLOCK) for _ in range(200)))


async def answer_request(reader, writer):
    await reader.readline()
    query_database()
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    await writer.drain()
    writer.close()


async def ask(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\n")
    await reader.read()
    writer.close()


async def server():
    async with await asyncio.start_server(answer_request, "127.0.0.1", 0) as listening:
        await asyncio.gather(*(ask(listening.sockets[0].getsockname()[1]) for _ in range(ROUNDS)))


async def main(mode):
    stop = asyncio.Event()
    others = [asyncio.create_task(beat(stop)) for _ in range(5)]
    if mode == "server":
        await server()
    elif mode == "awaiting":
        await awaiting()
    elif mode == "executor":
        await in_a_thread(query_database)
    else:
        await blocked(prepare(mode))
    stop.set()
    await asyncio.gather(*others)


if sys.argv[2:] == ["uvloop"]:
    import uvloop

    uvloop.run(main(sys.argv[1]))
else:
    asyncio.run(main(sys.argv[1]))
