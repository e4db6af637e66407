"""The checks of tools/ can fail: each test plants one violation in a small tree."""
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(tool, tree, files):
    """The exit status and the lines that tools/TOOL prints about a tree of these files."""
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run([ROOT / "tools" / tool, tree], capture_output=True, text=True, check=False, timeout=60)
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


HEADERS = {name: "" for name in ("src/base/fold.h", "src/base/format.h", "src/record/record.h", "src/collect/host/proc.h",
                                 "src/collect/run/watch.h", "src/views/term/text.h", "compat/nrt/nrt_inside.h")}

WRONG_INCLUDES = [
    ("src/base/fold.c", "record/record.h", "base includes record/record.h, which is in a later layer"),
    ("src/collect/host/a.c", "collect/run/watch.h", "collect/host includes collect/run/watch.h, which is in a later room"),
    ("src/collect/collect.h", "collect/host/proc.h",
     "a header beside the rooms includes collect/host/proc.h, which is in a room"),
    ("src/base/a.c", "fold.h", "fold.h: write it from src, with its folder"),
    ("src/base/a.c", "../record/record.h", "../record/record.h: write it without ../"),
    ("include/kymo/kymo.h", "base/fold.h", "a public header includes base/fold.h, which users do not have"),
    ("python/trace/trace.c", "base/fold.h", "python includes base/fold.h, which is not in its list"),
    ("compat/nrt/nrt.c", "base/format.h", "compat includes base/format.h, which is not in its list"),
    ("compat/vaccel/prof.c", "../nrt/nrt_inside.h", "../nrt/nrt_inside.h: write it without ../"),
]


@pytest.mark.parametrize("file, include, problem", WRONG_INCLUDES)
def test_a_wrong_include_is_found(tmp_path, file, include, problem):
    assert check("check-layers", tmp_path, {**HEADERS, file: f'\n#include "{include}"\n'}) == (1, [f"{file}:2: {problem}"])


RIGHT_INCLUDES = [
    ("src/record/record.c", "base/fold.h"),
    ("src/collect/run/watch.c", "collect/host/proc.h"),
    ("src/collect/collect.c", "collect/run/watch.h"),
    ("python/trace/trace.c", "base/format.h"),
    ("python/trace/trace.c", "../core/text.h"),
    ("compat/nrt/nrt.c", "nrt_inside.h"),
    ("compat/nrt/nrt.c", "kymo/kymo.h"),
]


@pytest.mark.parametrize("file, include", RIGHT_INCLUDES)
def test_a_right_include_passes(tmp_path, file, include):
    assert check("check-layers", tmp_path, {**HEADERS, file: f'#include "{include}"\n'}) == (0, ["1 includes are in order"])


def test_a_folder_of_26_files_is_found(tmp_path):
    files = {f"web/src/{n}.js": "" for n in range(26)}
    assert check("check-layers", tmp_path, files) == (1, ["web/src: 26 files; at most 25"])


def test_a_folder_that_has_no_place_in_the_order_is_found(tmp_path):
    status, lines = check("check-layers", tmp_path, {"src/collect/attic/a.c": ""})
    assert (status, lines) == (1, ["src/collect/attic/a.c: src/collect/attic is in no list of tools/check-layers"])


def test_a_wide_line_is_found(tmp_path):
    files = {"src/a.c": "\t" + "x" * 92 + "\n\t" + "x" * 93 + "\n", "web/src/a.js": "x" * 120 + "\n" + "x" * 121 + "\n"}
    assert check("check-width", tmp_path, files) == \
        (1, ["src/a.c:2: 101 columns; at most 100", "web/src/a.js:2: 121 columns; at most 120"])


@pytest.mark.parametrize("text, phrase", [
    ("/* The reader is told of it. */", "is told"),
    ("/*\n * The reader is\n * told of it.\n */", "is told"),
    ('say("nothing, since no"\n    "body reads; whoever "\n    "asks");', "whoever"),
    ("Nobody reads it.", "Nobody"),
])
def test_a_phrase_is_found_with_its_better_form(tmp_path, text, phrase):
    status, lines = check("check-prose", tmp_path, {"src/a.c": f"\n{text}\n"})
    assert status == 1
    assert len(lines) == 1 and f": {phrase} → " in lines[0]


def test_plain_prose_passes(tmp_path):
    assert check("check-prose", tmp_path, {"src/a.c": "/* The reader copies the row, then checks it. */\n"}) == (0, ["1 files"])


@pytest.mark.parametrize("files, problem", [
    ({"src/a.c": "static int same(void)\n{\n}\n", "src/b.c": "\nint same(int x)\n{\n}\n"},
     "src/b.c:2: same is also defined in src/a.c:1"),
    ({"src/a.c": 'x = "SELECT a, "\n\t"b "\n\t"FROM c";\n'}, "src/a.c:1: SQL of 3 lines; move it to a .sql file"),
    ({"src/a.c": "/* __atomic_ */\ny = __atomic_load_n(&x, 0);\n"}, "src/a.c:2: __atomic_; use the macros of include/kymo/atomic.h"),
])
def test_a_broken_habit_is_found(tmp_path, files, problem):
    assert check("check-names", tmp_path, files) == (1, [problem])


def test_stand_ins_two_lines_of_sql_and_a_call_pass(tmp_path):
    files = {"src/a.c": 'int same(void)\n{\n\treturn other("SELECT a "\n\t\t"FROM b");\n}\n', "src/no_a.c": "int same(void)\n{\n}\n"}
    assert check("check-names", tmp_path, files) == (0, ["1 functions have one definition each"])


# --- check-foreign ----------------------------------------------------------------------------------------------

UNESCAPED = [
    ('fprintf(stderr, "kymo: removed %s, %s\\n", path, format_bytes(3).text);', "fprintf() prints path"),
    ('printf("%-*s %d %.*s\\n", 3, "a", 4, 5, comm);', "printf() prints comm"),
    ("fputs(name, stdout);", "fputs() prints name"),
    ("puts(entry->program);", "puts() prints entry->program"),
    ("fwrite(text, 1, bytes, stdout);", "fwrite() prints text"),
    ('printf(known ? "%s\\n" : "?", name);', "printf() prints name"),
    ('printf("%s", known ? "known" : name);', 'printf() prints known ? "known" : name'),
    ('printf("%" PRIu64 " of %s\\n", count, name);', "printf() prints name"),
    ('buf_print(&line, "in %s", path);\n\tfprintf(out, "%s\\n", buf_get(&line));', "buf_print() prints path"),
    ('buf_text(&line, path);\n\tfputs(buf_get(&line), out);', "buf_text() prints path"),
    ('fprintf(stderr, "%s\\n",\n\t\terr.text);', "fprintf() prints err.text"),
]


@pytest.mark.parametrize("code, problem", UNESCAPED)
@pytest.mark.parametrize("folder", ["src/cmds", "src/collect/run", "src/views/status"])
def test_a_print_without_escapes_is_found(tmp_path, folder, code, problem):
    file = f"{folder}/a.c"
    assert check("check-foreign", tmp_path, {file: f"void f(void)\n{{\n\t{code}\n}}\n"}) == \
        (1, [f"{file}:3: {problem} without escapes; use text_line() or text_visible()"])


ESCAPED = [
    'fprintf(stderr, "%zu rows%s\\n", count, count == 1 ? "" : "s");',
    'printf("kymo " KYMO_VERSION "\\n");',
    'fprintf(out, "%s%s%s, %s\\n", text_paint(style, TEXT_BOLD), buf_get(&line), text_plain(style), format_bytes(n).text);',
    'fprintf(stderr, "cannot write: %s\\n", strerror(errno));',
    'text_line(stderr, "kymo: removed %s", path);',
    'buf_print(&sql, "FROM %s", table);\n\tquery(buf_get(&sql));\n\tputs("done");',
    "text_visible(&line, path, strlen(path));\n\tfputs(buf_get(&line), out);",
    'printf("%s\\n", word_of(state)); /* not foreign: one of three constants */',
    '/* printf("%s", name); */',
    'snprintf(path, sizeof(path), "%s/%s", folder, name);',
]


@pytest.mark.parametrize("code", ESCAPED)
def test_an_escaped_print_passes(tmp_path, code):
    status, lines = check("check-foreign", tmp_path, {"src/cmds/a.c": f"void f(void)\n{{\n\t{code}\n}}\n"})
    assert (status, lines[0].split(" ", 1)[1]) == (0, "prints are escaped")


def test_where_nothing_is_printed_for_people_nothing_is_checked(tmp_path):
    assert check("check-foreign", tmp_path, {"src/record/a.c": 'printf("%s", name);\n'}) == (0, ["0 prints are escaped"])
