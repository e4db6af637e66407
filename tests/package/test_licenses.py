"""The licences of tools/licenses.txt are those that Debian's copyright files name."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The words of copyright files for an SPDX identifier: of the machine-readable form, and of older texts.
WORDS = {
    "Apache-2.0": r"Apache-2\.0|Apache License,? Version 2\.0",
    "LLVM-exception": r"LLVM[ -]Exception",
    "GCC-exception-3.1": r"GCC Runtime Library Exception|RUNTIME LIBRARY EXCEPTION",
    "MIT": r"License: (?:Expat|MIT)|Permission is hereby granted, free of charge",
    "MIT-Modern-Variant": r"Permission is hereby granted, without written agreement|License: Zsh",
    "PSF-2.0": r"PYTHON SOFTWARE FOUNDATION LICENSE|PSF license|Python Software Foundation",
    "BSD-2-Clause": r"BSD-2-Clause|BSD-2\b",
    "BSD-3-Clause": r"BSD-3-Clause|BSD-3\b",
    "Zlib": r"License: Zlib", "CC0-1.0": r"CC0-1\.0", "Unlicense": r"Unlicense", "blessing": r"public[ -]domain",
}
# Packages that only depend on the named ones, whose licence is meant.
STANDS_FOR = {"build-essential": "gcc-12-base", "gcc-aarch64-linux-gnu": "gcc-12-cross-base", "clang": "libclang-common-14-dev",
              "clang-format": "clang-format-14", "clang-tidy": "clang-tidy-14", "libclang-rt-dev": "libclang-rt-14-dev",
              "python3": "python3.11-minimal", "python3-venv": "python3.11-venv", "python3-dev": "python3.11-dev"}


def rows():
    for line in (ROOT / "tools/licenses.txt").read_text().splitlines():
        words = [word.strip() for word in line.split("|")]
        if words[0] == "deb":
            yield words[1], words[2]


def gnu(identifier):
    """GPL-2.0-or-later: GPL-2+, GPL-2.0+, or the sentence of the GNU licences."""
    family, version, later = re.fullmatch(r"(L?GPL)-(\d(?:\.\d)?)-(only|or-later)", identifier).groups()
    short = re.escape(version).replace(r"\.0", r"(?:\.0)?")
    title = r"(?:Lesser |Library )" if family == "LGPL" else ""
    sentence = rf"GNU {title}General\s+Public\s+License[^.]{{0,120}}version {short}"
    if later == "only":
        return rf"(?<!L){family}-{short}(?!\+|\.\d)|version {short}|{family}.{{0,20}}version {short}" if family == "GPL" else \
            rf"{family}-{short}(?!\+)|{sentence}"
    return rf"(?<!L){family}-{short}\+|{sentence}" if family == "GPL" else rf"{family}-{short}\+|{sentence}"


def test_every_identifier_can_be_checked():
    known = [word for _, license in rows() for word in re.split(r" (?:AND|OR|WITH) ", license)]
    assert [word for word in known if word not in WORDS and not re.match(r"L?GPL-", word)] == []


@pytest.mark.parametrize("package,license", list(rows()))
def test_a_licence_is_in_debians_copyright_file(package, license):
    files = [pathlib.Path("/usr/share/doc", name, "copyright") for name in (STANDS_FOR.get(package, package), package)]
    found = [file for file in files if file.exists()]
    if not found:
        pytest.skip(f"{package} is not installed from Debian")
    text = found[0].read_text(errors="replace")
    for word in re.split(r" (?:AND|OR|WITH) ", license):
        pattern = WORDS.get(word) or gnu(word)
        assert re.search(pattern, text, re.I | re.S), f"{found[0]} does not name {word}"
