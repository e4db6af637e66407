"""docs/architecture.md: every stop of a zone is in the file that is named."""
import re
import subprocess

import pytest
from conftest import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text()
STOP = re.compile(r"^\| `([\w./-]+)` \| ((?:`\w+`(?:, )?)+) \|", re.M)
STOPS = [(file, name) for file, names in STOP.findall(PAGE) for name in re.findall(r"\w+", names)]
# Where a name is defined: at the start of a line in C, in a class or a module in JavaScript.
DEFINED = {".c": r"^(?:[a-z][\w *]*[ *]){name}(?:\(|\[\] =)", ".h": r"^(?:#define |[a-z][\w *]*[ *]){name}\(",
           ".js": r"^(?:export |async |function |class |const |\t)+{name}(?:\(| \{{| =)"}


def test_the_walk_goes_from_the_macro_to_the_pixel():
    assert STOPS[0] == ("include/kymo/kymo.h", "KYMO_SCOPE")
    assert ("web/src/timeline/draw.js", "drawZones") in STOPS
    assert len(STOPS) > 30


@pytest.mark.parametrize("file,name", STOPS, ids=[name for _, name in STOPS])
def test_a_stop_is_where_the_page_says(file, name):
    path = ROOT / file
    assert path.is_file(), f"docs/architecture.md names {file}, which is not there"
    pattern = DEFINED[path.suffix].replace("{{", "{").replace("{name}", name)
    assert re.search(pattern, path.read_text(), re.M), f"docs/architecture.md says that {name} is in {file}"


def test_every_path_on_the_page_is_there():
    named = set(re.findall(r"`((?:src|include|web|tests|tools|python|bench)/[\w./-]+)`", PAGE))
    assert named and [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_folder_with_code_is_on_the_page():
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "src").rglob("*.c")}
    listed = re.findall(r"^\| `(src/[\w/]+)` \|", PAGE, re.M)
    assert [str(folder) for folder in sorted(folders) if str(folder) not in listed] == []


def test_the_table_of_folders_is_up_to_date():
    done = subprocess.run([ROOT / "tools/gen-tree-table", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
