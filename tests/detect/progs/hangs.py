"""Programs that make no progress until they are killed: `hangs.py KIND SECONDS` kills itself after that time. Names of functions
are what the report has to tell."""
import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time

KIND, SECONDS = sys.argv[1], float(sys.argv[2])


def kill_later(pids):
    """From a process that is not part of the program: nothing in it moves."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(SECONDS)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


accounts, journal = threading.Lock(), threading.Lock()


def transfer_money():
    with accounts:
        time.sleep(0.2)
        with journal:
            pass


def write_journal():
    with journal:
        time.sleep(0.2)
        with accounts:
            pass


def locks():
    threads = [threading.Thread(target=transfer_money, name="transfer"), threading.Thread(target=write_journal, name="journal")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def wait_for_reply(connection):
    return connection.recv(16)


def reply():
    server = socket.create_server(("127.0.0.1", 0))
    print(f"127.0.0.1:{server.getsockname()[1]}", flush=True)
    with socket.create_connection(server.getsockname()) as connection:
        connection.sendall(b"question")
        wait_for_reply(connection)


def read_answer(stream):
    return os.read(stream, 16)


def read_question(stream):
    return os.read(stream, 16)


def pipes():
    """Parent and child each read first."""
    to_child, to_parent = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(to_child[1])
        os.close(to_parent[0])
        read_question(to_child[0])
        os._exit(0)
    os.close(to_child[0])
    os.close(to_parent[1])
    kill_later([child, os.getpid()])
    read_answer(to_parent[0])


def wait_for_converter(child):
    child.wait()


def full_pipe():
    """The child writes more than the pipe holds, and nothing reads it before its end."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdout.write('x' * 1000000)"], stdout=subprocess.PIPE) as child:
        kill_later([child.pid, os.getpid()])
        wait_for_converter(child)


def query_database():
    time.sleep(1000)


async def handle_request():
    query_database()


async def serve():
    await asyncio.gather(handle_request(), asyncio.sleep(0.1))


def loop():
    asyncio.run(serve())


def poll_status():
    time.sleep(0.01)


def busy():
    """It goes on until the end: there is nothing to explain but the kill."""
    while True:
        poll_status()
        sum(range(200_000))


if KIND not in ("pipes", "full_pipe"):
    kill_later([os.getpid()])
{"locks": locks, "reply": reply, "pipes": pipes, "full_pipe": full_pipe, "loop": loop, "busy": busy}[KIND]()
