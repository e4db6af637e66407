"""Pages with commands and their output: the files are written, the commands run, and the outputs compared.

    ```c work.c         a file
    ```console          `$ command`, then its output, both streams
    …                   in a line: anything; as a line of its own: any lines

With numbers=False a page shows the numbers, bars and padding of one run, and any others match.
"""
import re
import subprocess

FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.S | re.M)
NUMBER = re.compile(r"(?:< )?\d[\d.,]*(?: ?(?:ns|µs|ms|s|kB|MB)\b)?")
BARS = re.compile(r"[ ▁▂▃▄▅▆▇█▏▎▍▌▋▊▉─]+")
SECONDS = 120


def blocks(text):
    """(kind, file name or None, body) in the order of the page."""
    return [(kind, name or None, body) for kind, name, body in FENCE.findall(text)]


def commands(body):
    """(command, expected output) of a console block; a command continues after a backslash."""
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found and found[-1][0].endswith("\\"):
            found[-1][0] = found[-1][0][:-1] + line.strip()
        elif found:
            found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def without_numbers(text):
    """The text with each number and its unit as N, and each run of spaces or bars as one space."""
    lines = [BARS.sub(" ", NUMBER.sub("N", line)).strip() for line in text.splitlines()]
    return "\n".join(lines) + "\n" * text.endswith("\n")


def pattern(expected):
    """The expected lines as a regular expression."""
    out = ""
    for line in expected.splitlines():
        if line.strip() == "…":
            out += r"(?:.*\n)*?"
        else:
            out += ".*".join(re.escape(part.rstrip() if i == line.count("…") else part)
                             for i, part in enumerate(line.split("…"))) + r"[ ]*\n"
    return out


def matches(expected, printed, numbers):
    if not numbers:
        expected, printed = without_numbers(expected), without_numbers(printed)
    return re.fullmatch(pattern(expected), printed)


def run(command, folder, env):
    return subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)


def run_page(text, folder, env, numbers=True):
    """Runs the page in the folder; returns the differences as text."""
    wrong = []
    for kind, name, body in blocks(text):
        if name:
            (folder / name).write_text(body)
        if kind != "console":
            continue
        for command, expected in commands(body):
            done = run(command, folder, env)
            if not matches(expected, done.stdout, numbers):
                wrong.append(f"$ {command}\n--- the page says\n{expected}\n--- it printed (status {done.returncode})\n{done.stdout}")
    return wrong
