"""The fuzz targets, how they are built, and docs/fuzzing.txt: what was fuzzed so far. Used by tests/run, tools/fuzz-hours and
tools/gen-reliability.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ROOT / "docs/fuzzing.txt"
HOURS = 24
# Without DuckDB, which is not built for sanitizers; fuzz/packed runs the plain build, with DuckDB.
BUILD = ["-Dfuzz=true", "-Dtests=false", "-Dduckdb=disabled", "-Darrow=disabled", "-Dweb=disabled",
         "-Db_sanitize=address,undefined", "-Db_lundef=false"]
COMPILERS = {"CC": "clang", "CXX": "clang++"}
OUTSIDE = ["packed"]  # programs of their own, with the options of libFuzzer that are used here
HEAD = """# What was fuzzed so far. tools/fuzz-hours adds to it; tools/gen-reliability prints it into docs/reliability.md.
#
# target NAME CPU-SECONDS EXECUTIONS LAST-DAY
# finding NAME DAY open|fixed WHAT        a person changes open to fixed, together with the fix and its seed
"""


def targets():
    return sorted(path.stem for path in (ROOT / "fuzz").glob("*.c")) + OUTSIDE


def source_of(name):
    return f"fuzz/{name}" if name in OUTSIDE else f"fuzz/{name}.c"


def program_of(name):
    return ROOT / "fuzz" / name if name in OUTSIDE else ROOT / "build-fuzz/fuzz" / name


def is_built(name):
    return program_of(name).exists()


def command_of(name, seconds, found, corpus):
    """Runs a target for some seconds. Inputs that fail are kept in found, new ones in corpus."""
    seeds = [ROOT / "fuzz/corpus" / name] if (ROOT / "fuzz/corpus" / name).is_dir() else []
    return [program_of(name), f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1",
            f"-artifact_prefix={found}/", corpus, *seeds]


class Row:
    def __init__(self, seconds=0.0, executions=0, day="never"):
        self.seconds, self.executions, self.day = seconds, executions, day


class Finding:
    def __init__(self, name, day, state, what):
        self.name, self.day, self.state, self.what = name, day, state, what


def read_ledger(path=LEDGER):
    rows: dict[str, Row] = {}
    findings: list[Finding] = []
    for line in path.read_text().splitlines() if path.exists() else []:
        words = line.split()
        if words[:1] == ["target"]:
            rows[words[1]] = Row(float(words[2]), int(words[3]), words[4])
        elif words[:1] == ["finding"]:
            findings.append(Finding(words[1], words[2], words[3], " ".join(words[4:])))
    return rows, findings


def write_ledger(rows, findings, path=LEDGER):
    lines = [f"target {name} {row.seconds:.0f} {row.executions} {row.day}" for name, row in sorted(rows.items())]
    lines += [f"finding {one.name} {one.day} {one.state} {one.what}" for one in findings]
    aside = path.with_suffix(".new")
    aside.write_text(HEAD + "\n" + "\n".join(lines) + "\n")
    aside.replace(path)


def executions_in(output):
    """What a run has executed; one that failed has no statistics."""
    final = re.findall(r"^stat::number_of_executed_units: (\d+)", output, re.M)
    return int(final[-1]) if final else max(map(int, re.findall(r"^#(\d+)\t", output, re.M)), default=0)


def hours(seconds):
    return f"{seconds / 3600:.1f}"


def table(rows, findings):
    """The chapter of docs/reliability.md."""
    total = sum(row.seconds for row in rows.values())
    whole = f"**{hours(total)} of {HOURS} CPU hours, {sum(row.executions for row in rows.values()):,} executions"
    fixed = sum(one.state == "fixed" for one in findings)
    out = [f"{whole}; {len(findings)} findings, {fixed} of them fixed.**", "",
           "| target | CPU hours | executions | findings | fixed | last run |", "|---|---:|---:|---:|---:|---|"]
    for name in sorted(set(targets()) | set(rows)):
        row, mine = rows.get(name, Row()), [one for one in findings if one.name == name]
        out.append(f"| {source_of(name)} | {hours(row.seconds)} | {row.executions:,} | {len(mine)} | "
                   f"{sum(one.state == 'fixed' for one in mine)} | {row.day} |")
    return out + [""] + [f"- {one.day}, {one.name}, {one.state}: {one.what}" for one in findings] + [""] * bool(findings)
