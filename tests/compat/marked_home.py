"""Recordings of programs that are marked with another tool's API, made by `kymo run`."""
import json
import subprocess

from programs import KYMO, Home, said


class Marked(Home):
    """`kymo run` of a program, and its recording."""

    def __init__(self, path, variable):
        super().__init__(path)
        self.file = path / "recording"
        self.env.pop(variable, None)

    def record(self, *command, status=0, options=(), **env):
        done = subprocess.run([str(word) for word in (KYMO, "run", "-o", self.file, *options, "--", *command)], timeout=120,
                              env={**self.env, **env}, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def rows(self, sql):
        return json.loads(said([KYMO, "query", "-f", "json", self.file, sql], env=self.env))
