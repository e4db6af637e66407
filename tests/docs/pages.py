"""Pages that show what to type and what is answered: their files are written, their commands run, their outputs compared.

    ```c work.c         a file
    ```console          `$ command`, then what it prints, both streams
    …                   in a line: anything; as a line of its own: any lines
"""
import re
import subprocess

FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.S | re.M)
SECONDS = 120


def blocks(text):
    """(kind, file name or None, body) in the order of the page."""
    return [(kind, name or None, body) for kind, name, body in FENCE.findall(text)]


def commands(body):
    """(command, expected output) of a console block; a command goes on after a backslash."""
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found and found[-1][0].endswith("\\"):
            found[-1][0] = found[-1][0][:-1] + line.strip()
        elif found:
            found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


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


def run_page(text, folder, env):
    """Runs the page in the folder; gives what differs, as text to read."""
    wrong = []
    for kind, name, body in blocks(text):
        if name:
            (folder / name).write_text(body)
        if kind != "console":
            continue
        for command, expected in commands(body):
            done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)
            if not re.fullmatch(pattern(expected), done.stdout):
                wrong.append(f"$ {command}\n--- the page says\n{expected}\n--- it printed (status {done.returncode})\n{done.stdout}")
    return wrong
