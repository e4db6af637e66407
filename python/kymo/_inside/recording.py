"""A recording of a part of this program, made from inside: with kymo.recording() as r."""
from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock

from kymo._kymo import Error, directory, disable, enable, enabled
from kymo._query import Result, find_program, plain_environment, query

TYPE_CHECKING = False  # as in _query.py
if TYPE_CHECKING:
    import subprocess
    from types import TracebackType

    Path = str | os.PathLike[str]

READY_SECONDS = 2.0  # how long start() waits for the collector
END_SECONDS = 10.0  # how long stop() waits for it


def _run(*words: str, wants_output: bool = True) -> str:
    """Runs the kymo program; its standard output. Raises Error with its message."""
    import subprocess

    command = [find_program(), *words]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=plain_environment(), check=False)
    except OSError as error:
        raise Error(f"kymo: cannot start {command[0]}: {error.strerror}") from None
    if done.returncode:
        raise Error(done.stderr.decode(errors="replace").strip() or f"kymo {words[0]} failed with status {done.returncode}")
    return done.stdout.decode(errors="replace") if wants_output else ""


# --- what is switched on while a recording lasts -------------------------------------------------------------


class _Switch:
    """Something that is on while at least one recording wants it, and was not on before."""

    def __init__(self) -> None:
        self.users = 0
        self.mine = False

    def take(self) -> None:
        self.users += 1
        if self.users == 1:
            self.mine = self.turn_on()

    def give(self) -> None:
        self.users -= 1
        if self.users == 0 and self.mine:
            self.turn_off()

    def turn_on(self) -> bool:
        """False: it was on already, and stays on afterwards."""
        raise NotImplementedError

    def turn_off(self) -> None:
        raise NotImplementedError


class _Zones(_Switch):
    def turn_on(self) -> bool:
        if enabled():
            return False
        # As kymo run sets them; the first enable() reads them.
        ours = {name: value for name, value in (("KYMO_KEEP", "all"), ("KYMO_GC", "on")) if name not in os.environ}
        os.environ.update(ours)
        try:
            enable()
        finally:
            for name in ours:
                os.environ.pop(name, None)
        if not enabled():
            raise Error("recording is off in this process: KYMO=off, or no directory for it; kymo doctor shows more")
        return True

    def turn_off(self) -> None:
        disable()


class _Collections(_Switch):
    loaded = False  # the extension, by an earlier recording

    def turn_on(self) -> bool:
        from kymo import _auto

        if "kymo._gc" in sys.modules and not self.loaded:  # by kymo run
            return False
        self.loaded = True
        try:
            _auto.extension("_gc").arm()
        except ImportError:  # not built for this Python
            return False
        return True

    def turn_off(self) -> None:
        disarm = getattr(sys.modules.get("kymo._gc"), "disarm", None)
        if disarm:
            disarm()


class _Calls(_Switch):
    def turn_on(self) -> bool:
        from kymo import _auto

        if _auto.mode == "on":
            return False
        _auto.begin()
        return True

    def turn_off(self) -> None:
        from kymo import _auto

        _auto.end()


class _Torch(_Switch):
    def turn_on(self) -> bool:
        from kymo import enable_torch_profiling

        enable_torch_profiling()
        return True

    def turn_off(self) -> None:
        from kymo import disable_torch_profiling

        disable_torch_profiling()


class _Trainers(_Switch):
    """Phases and metrics of transformers, Lightning and others, as under kymo run."""

    def turn_on(self) -> bool:
        from kymo import _auto

        _auto.arm_trainers()
        return not _auto.is_recording()  # kymo run keeps them

    def turn_off(self) -> None:
        sys.modules["kymo._trainers_auto"].disarm()


class _Memory(_Switch):
    def turn_on(self) -> bool:
        import kymo

        if "memory=on" in _run("config", str(os.getpid()), "memory").replace(" ", ""):
            return False
        _run("config", str(os.getpid()), "memory=on")
        with kymo.region("kymo: memory on"):  # settings are applied at a region
            pass
        return True

    def turn_off(self) -> None:
        _run("config", str(os.getpid()), "memory=off")


class _Collector(_Switch):
    """`kymo attach` of this process: stacks, CPU, memory, and segments that leave the memory."""

    child: subprocess.Popen[bytes] | None = None
    native = True

    def turn_on(self) -> bool:
        import subprocess

        words = ["attach", "-q", *(() if self.native else ("--no-native",)), str(os.getpid())]
        try:
            self.child = subprocess.Popen([find_program(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, env=plain_environment(), start_new_session=True)
        except OSError as error:
            raise Error(f"kymo.start: cannot start {find_program()}: {error.strerror}") from None
        _let_read(self.child.pid)
        self._wait_until_ready(self.child)
        return True

    def _wait_until_ready(self, child: subprocess.Popen[bytes]) -> None:
        """The collector has a directory of its own in the recording once it records."""
        run, mine = os.path.dirname(directory() or "."), f"p{child.pid}-"
        end = time.monotonic() + READY_SECONDS
        try:
            while time.monotonic() < end and child.poll() is None:
                if any(name.startswith(mine) for name in os.listdir(run)):
                    return
                time.sleep(0.001)
        except OSError:  # the directory has been removed
            pass

    def turn_off(self) -> None:
        import signal
        import subprocess

        child, self.child = self.child, None
        if child is None:
            return
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        try:
            child.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
        _let_read(0)


def _let_read(pid: int) -> None:
    """Where only ancestors may read a process (Yama), permits it to this one alone; 0: to no other."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as file:
            if file.read().strip() != "1":
                return
        import ctypes

        PR_SET_PTRACER = 0x59616D61
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)
    except (OSError, ImportError):
        pass


_zones, _collections, _calls, _torch, _trainers, _memory, _collector = (
    _Zones(), _Collections(), _Calls(), _Torch(), _Trainers(), _Memory(), _Collector())
_lock = allocate_lock()
_made = 0


def _after_fork() -> None:
    """A child has neither the collector nor the recordings of its parent; its rows go to them."""
    global _lock
    _lock = allocate_lock()
    _collector.child = None


os.register_at_fork(after_in_child=_after_fork)


# --- recordings --------------------------------------------------------------------------------------------------


class Recording:
    """What happened between start() and stop(), in one file.

    >>> with kymo.recording() as r:                                           # doctest: +SKIP
    ...     train()
    >>> print(r.report())                                                     # doctest: +SKIP
    >>> r.query("FROM trace.regions")                                         # doctest: +SKIP
    """

    def __init__(self, path: Path | None, switches: list[_Switch]) -> None:
        self.path = os.path.abspath(os.fspath(path)) if path is not None else _new_path()
        self.seconds: float | None = None  # how long it lasted; None: it still lasts
        self._switches = switches
        self._pid = os.getpid()
        self._why_not = ""
        with _lock:
            try:
                self._take_all()
            except (Error, OSError) as error:  # as everywhere, a failure to record never raises
                self._why_not, self._switches, self.seconds = str(error), [], 0.0
                print(f"kymo: nothing is recorded: {error}", file=sys.stderr)
        self._begin = time.monotonic()

    def _take_all(self) -> None:
        taken: list[_Switch] = []
        try:
            for switch in self._switches:
                switch.take()
                taken.append(switch)
        except BaseException:
            self._switches[len(taken)].users -= 1
            for one in reversed(taken):
                one.give()
            raise

    def stop(self) -> Recording:
        """Ends the recording and writes its file. A second call, or one in a forked child, does nothing."""
        with _lock:
            if self.seconds is not None or self._pid != os.getpid():
                return self
            self.seconds = time.monotonic() - self._begin
        for switch in self._switches:
            if switch is _calls:
                self._give(switch)  # the calls below are not the program's
        try:
            _run("snapshot", "--force", "--since", f"{self._begin:.9f}", str(self._pid), self.path, wants_output=False)
        finally:
            for switch in reversed(self._switches):
                if switch is not _calls:
                    self._give(switch)
        return self

    def _give(self, switch: _Switch) -> None:
        with _lock:
            switch.give()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        try:
            self.stop()
        except Error as failure:  # the program goes on; _file() has the reason
            self._why_not = str(failure)
            print(f"kymo: {failure}", file=sys.stderr)

    def __repr__(self) -> str:
        state = "still recording" if self.seconds is None else f"{self.seconds:.3g} s"
        return f"<kymo.Recording {self.path}: {state}>"

    def _repr_html_(self) -> str | None:
        """In a notebook: the findings and the steps; None, the text, while it has no file."""
        if self.seconds is None or self._why_not:
            return None
        from kymo._inside import rich

        return rich.recording(self)

    def _file(self) -> str:
        if self._why_not:
            raise Error(self._why_not)
        if self.seconds is None:
            raise Error("the recording has no file yet: call stop() first")
        return self.path

    def query(self, sql: str) -> Result:
        """The rows of a query, which pandas, polars and pyarrow take as they are (see kymo.Result)."""
        return query(sql, self._file())

    def report(self) -> str:
        """The report of `kymo report`, as text."""
        return _run("report", self._file())

    def findings(self) -> list[dict[str, object]]:
        """The findings of the report, the most important one first."""
        import json

        found: list[dict[str, object]] = json.loads(_run("report", "-f", "json", self._file()))["verdicts"]
        return found

    def html(self, path: Path | None = None) -> str:
        """Writes the page of the report, which needs no network and no server; returns its path."""
        out = os.path.abspath(os.fspath(path)) if path is not None else os.path.splitext(self._file())[0] + ".html"
        _run("report", "--force", "-o", out, self._file(), wants_output=False)
        return out

    def compare(self, other: Recording | Path) -> str:
        """What differs in `other`, as text: this recording is the one to compare with."""
        return _run("compare", "--anyway", self._file(), other._file() if isinstance(other, Recording) else os.fspath(other))


def _new_path() -> str:
    global _made
    _made += 1
    name = f"kymo-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{_made}.kymosnap"
    return os.path.abspath(name)


def start(path: Path | None = None, *, python: bool = False, torch: bool | None = None, memory: bool = False,
          native: bool = True) -> Recording:
    """Starts to record this program; stop() of the result ends it and writes the file.

        >>> r = kymo.start()                                                  # doctest: +SKIP
        >>> train()                                                           # doctest: +SKIP
        >>> print(r.stop().report())                                          # doctest: +SKIP

    path    the file, by default kymo-DATE-PID-N.kymosnap in the working directory; an existing file is replaced
    python  records every call of a Python function
    torch   records torch modules, and the phases of trainers; None: if torch has been imported
    memory  records which lines allocate
    native  samples native stacks too

    Stacks, CPU and memory are sampled by a process beside this one. Recordings may overlap; each file has the rows
    of its own time. Under `kymo run` the rows are in the recording of the run, too.
    """
    for name, value in (("python", python), ("memory", memory), ("native", native)):
        if not isinstance(value, bool):
            raise TypeError(f"kymo.start: {name} takes a bool, not {type(value).__name__}")
    switches: list[_Switch] = [_zones, _collections, _collector]
    _collector.native = native
    if torch or (torch is None and "torch" in sys.modules):
        switches += [_torch, _trainers]
    if memory:
        switches.append(_memory)
    if python:
        switches.append(_calls)  # last: our own calls are not recorded
    return Recording(path, switches)


def recording(path: Path | None = None, *, python: bool = False, torch: bool | None = None, memory: bool = False,
              native: bool = True) -> Recording:
    """`with kymo.recording() as r:` records the block; the arguments are those of start()."""
    return start(path, python=python, torch=torch, memory=memory, native=native)
