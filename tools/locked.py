"""What tools/setup asks of the lists that tools/lock writes.

    locked.py constraints                  versions for pip to choose among
    locked.py hashes REPORT                what pip chose (pip install --dry-run --report), as requirements with hashes

A row of tools/deps whose version needs a newer Python is locked at an older version for this one. Builds of a locked version that
are not on PyPI (torch 2.13.0+cpu) have their hashes in tools/locked-more.txt.
"""
import json
import pathlib
import re
import sys

TOOLS = pathlib.Path(__file__).resolve().parent
ROW = re.compile(r"([\w.-]+)==([\w.+!]+)\s*(?:;\s*(.*?))?\s*((?:--hash=\S+\s*)*)$")


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def read_locked():
    """Rows of name, version, marker and hashes."""
    text = (TOOLS / "locked.txt").read_text().replace("\\\n", " ")
    rows = [match for match in map(ROW.match, text.splitlines()) if match]
    return [(plain(row[1]), row[2], row[3] or "", re.findall(r"sha256:(\w+)", row[4])) for row in rows]


def read_more():
    """Rows of name, version and hash."""
    path = TOOLS / "locked-more.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [tuple(line.split()[:3]) for line in lines if line and not line.startswith("#")]


def constraints():
    return [f"{name}=={version}" + (f" ; {marker}" if marker else "") for name, version, marker, _ in read_locked()]


def hashes(report):
    """Fails for a package that is not locked at that version."""
    locked, out = read_locked(), []
    for one in report["install"]:
        name, version = plain(one["metadata"]["name"]), one["metadata"]["version"]
        known = [digest for row in locked if row[:2] == (name, version) for digest in row[3]]
        known += [digest for more, build, digest in read_more() if (more, build) == (name, version)]
        if not known:
            sys.exit(f"error: no hash of {name} {version} is locked; if you trust the file: tools/lock --file FILE")
        out.append(" ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in known)]))
    return out


if __name__ == "__main__":
    if sys.argv[1:2] == ["constraints"]:
        print("\n".join(constraints()))
    elif sys.argv[1:2] == ["hashes"] and len(sys.argv) == 3:
        for line in hashes(json.loads(pathlib.Path(sys.argv[2]).read_text())):
            print(line)
    else:
        sys.exit(__doc__)
