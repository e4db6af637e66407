"""A standalone cluster of Spark on loopback: a master and two workers, in the Python that has pyspark."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pyspark

HOME = pathlib.Path(pyspark.__file__).parent
SECONDS = 300


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def wait_for(path, text, seconds=SECONDS):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if text in path.read_text(errors="replace"):
            return
        time.sleep(0.2)
    raise AssertionError(f"no {text!r} in {path}: {path.read_text()[-2000:]}")


class Cluster:
    def __init__(self, folder):
        self.folder, self.children = folder, []
        self.port = free_port()
        self.start("master", "Master", "--host", "127.0.0.1", "--port", self.port, "--webui-port", free_port())
        wait_for(folder / "master.log", "I have been elected leader")
        for number in range(2):
            self.worker(number)

    def start(self, name, kind, *words):
        env = {
            **os.environ,
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "300m",
            "PYSPARK_PYTHON": sys.executable,
        }
        log = open(self.folder / f"{name}.log", "w")
        child = subprocess.Popen(
            [HOME / "bin/spark-class", f"org.apache.spark.deploy.{kind.lower()}.{kind}", *map(str, words)],
            env=env,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=self.folder,
        )
        log.close()
        self.children.append(child)
        return child

    def worker(self, number):
        child = self.start(
            f"worker{number}",
            "Worker",
            "--host",
            "127.0.0.1",
            "--port",
            free_port(),
            "--webui-port",
            free_port(),
            "-c",
            1,
            "-m",
            "900m",
            "-d",
            self.folder / f"work{number}",
            f"spark://127.0.0.1:{self.port}",
        )
        wait_for(self.folder / f"worker{number}.log", "Successfully registered with master")
        return child

    def stop(self):
        for child in self.children:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def session(self, warehouse, memory="600m"):
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master(f"spark://127.0.0.1:{self.port}")
            .appName("kymo")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.executor.memory", memory)
            .config("spark.sql.ansi.enabled", "true")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.task.maxFailures", "8")
            .config("spark.sql.warehouse.dir", str(warehouse))
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        return session
