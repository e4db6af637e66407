"""A program on a terminal of its own, whose keys a test presses and whose output it waits for."""
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][0B]?|\x1b\][^\x07]*\x07")


class Terminal:
    def __init__(self, command, *, cwd, env, rows=24, columns=100):
        self.seen, self.status = "", None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(str(command[0]), [str(word) for word in command], env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self, seconds):
        """Whether something has come, or the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # all have closed it
            data = b""
        if not data:
            self.end()
        self.seen += data.decode(errors="surrogateescape").replace("\r\n", "\n")
        return True

    def end(self):
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def plain(self):
        return ESCAPE.sub("", self.seen)

    def wait(self, *texts, seconds=30):
        """Waits for these texts, one behind the other, in what comes from here on; returns all up to there."""
        end = time.monotonic() + seconds
        while True:
            at, plain = 0, self.plain()
            for text in texts:
                at = plain.find(text, at)
                if at < 0:
                    break
                at += len(text)
            if at >= 0:
                self.seen = plain[at:]
                return plain[:at]
            assert self.status is None and time.monotonic() < end, (texts, plain)
            self.read(0.1)

    def wait_end(self, seconds=30):
        """Everything until the program ends."""
        end = time.monotonic() + seconds
        while self.status is None:
            assert time.monotonic() < end, self.plain()
            self.read(0.1)
        return self.plain()

    def close(self):
        with contextlib.suppress(OSError):
            os.close(self.fd)
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, 9)
            self.end()


@contextlib.contextmanager
def on_terminal(kymo, *words, env=None, **size):
    from conftest import KYMO
    terminal = Terminal([KYMO, *words], cwd=kymo.cwd, env={**kymo.env, **(env or {})}, **size)
    try:
        yield terminal
    finally:
        terminal.close()
