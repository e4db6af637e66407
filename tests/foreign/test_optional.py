"""optional.h, which is copied into projects: without kymo it leaves nothing, with kymo it is kymo.h. And what is for C++ alone."""
import re
import shutil

import pytest
from programs import BUILD, ROOT, Home, compiled, said

HEADER = ROOT / "include/kymo/optional.h"
HERE = ROOT / "tests/foreign"
COMPILERS = ["cc -std=c99", "cc -std=c11", "clang -std=c99", "clang -std=c11", "c++ -std=c++11", "c++ -std=c++17",
             "c++ -std=c++20", "clang++ -std=c++11", "clang++ -std=c++20"]
LINKED = [f"-L{BUILD}", "-lkymo", f"-Wl,-rpath,{BUILD}"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def compile_with(words, source, out, *options):
    compiler, standard = words.split()
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}: make setup")
    said([compiler, standard, "-xc++" if "++" in compiler else "-xc", *WARNINGS, *options[:1], source, "-o", out, *options[1:]])


def documented():
    """The program of the page about the API, with the header that a project copies."""
    blocks = re.findall(r"^```c\n(.*?)^```", (ROOT / "docs/c-api.md").read_text(), re.M | re.S)
    program = "\n".join(blocks)
    assert program.count("#include <kymo/kymo.h>") == 1 and "int main" in program
    return program.replace("#include <kymo/kymo.h>", '#include "optional.h"')


@pytest.fixture
def project(tmp_path):
    shutil.copy(HEADER, tmp_path)
    (tmp_path / "app.c").write_text(documented())
    return tmp_path


def names(text, pattern):
    return set(re.findall(pattern, text))


def test_optional_h_has_every_name_of_kymo_h():
    real, copy = (ROOT / "include/kymo/kymo.h").read_text(), HEADER.read_text()
    public = names(real, r"\b(kymo_[a-z][a-z0-9_]*)\(") | names(real, r"#define (KYMO_[A-Z]+)\(")
    assert len(public) > 40
    assert public - names(copy, r"#define (\w+)\(") == {"kymo_totals", "kymo_zone"}  # structs, made in C++ of no words
    for kind in ("struct", "enum"):
        assert names(real, rf"^{kind} (kymo_\w+)") - names(copy, rf"(?m)^{kind} (kymo_\w+)") == set()
    assert names(real, r"\tKYMO_[A-Z0-9]+ = \d+") == names(copy, r"\tKYMO_[A-Z0-9]+ = \d+")
    assert names(real, r"(?m)^class (\w+)") == names(copy, r"(?m)^class (\w+)")


@pytest.mark.parametrize("words", COMPILERS)
def test_without_kymo_the_documented_program_does_nothing(project, words):
    compile_with(words, project / "app.c", project / "app", "-O2")
    assert said([project / "app"]) == ""
    assert "kymo" not in said(["nm", "-u", project / "app"])


@pytest.mark.parametrize("words", COMPILERS)
def test_with_kymo_it_records(project, words):
    compile_with(words, project / "app.c", project / "app", f"-I{ROOT}/include", *LINKED)
    home = Home(project)
    assert "load: count: 2" in home.run(project / "app", KYMO="on")
    assert home.one("SELECT count FROM trace.regions WHERE name = 'tokenize'") == 1


def test_kymo_absent_takes_nothing_from_an_installed_kymo(project):
    compile_with("cc -std=c11", project / "app.c", project / "app", f"-I{ROOT}/include", "-DKYMO_ABSENT")
    assert said([project / "app"]) == ""


# --- C++ ----------------------------------------------------------------------------------------------------------

def test_lambdas_callables_and_coroutines(tmp_path):
    home = Home(tmp_path)
    home.run(compiled(HERE / "cxx.cpp", tmp_path / "cxx", "-std=c++20", "-Wpedantic"), KYMO="on")
    counts = {row["name"]: row["count"] for row in home.rows("SELECT name, count FROM trace.regions")}
    assert counts == {"add": 3, "worker": 1, "request": 1, "other thread": 1, "first_half::<lambda>": 1}
    ranges = home.rows("SELECT r.tid = m.tid AS same_tid, r.thread, r.start_ns + r.duration_ns > o.start_ns AS ends_there"
                       " FROM trace.zones r, trace.zones m,"
                       " trace.zones o WHERE r.name = 'request' AND m.name = 'first_half::<lambda>' AND o.name = 'other thread'")
    assert ranges == [{"same_tid": True, "thread": "main (ranges)", "ends_there": True}]


@pytest.mark.parametrize("header", ["kymo/kymo.h", "kymo/optional.h"])
def test_cxx_is_nothing_where_it_is_disabled(tmp_path, header):
    source = tmp_path / "cxx.cpp"
    source.write_text((HERE / "cxx.cpp").read_text().replace("kymo/kymo.h", header))
    compiled(source, tmp_path / "cxx", "-std=c++20", "-Wpedantic", "-DKYMO_DISABLE", "-DKYMO_ABSENT", libraries=())
    assert said([tmp_path / "cxx"]) == ""


LAMBDAS = """
extern "C" {
#include <kymo/kymo.h>
}
namespace {
struct model {
    static int *train(int, int (*)(int)) {
        auto step = [](int n) {
            KYMO_LAMBDA();
            return n;
        };
        step(1);
        return nullptr;
    }
};
template <typename T> T twice(T value) {
    auto sum = [&](T other) {
        KYMO_LAMBDA();
        return value + other;
    };
    return sum(value);
}
}
int main() {
    model::train(1, nullptr);
    return twice(2) == 4 ? 0 : 1;
}
"""


@pytest.mark.parametrize("words", ["c++ -std=c++17", "clang++ -std=c++17"])
def test_a_lambda_is_named_by_its_function(tmp_path, words):
    (tmp_path / "lambdas.cpp").write_text(LAMBDAS)
    compile_with(words, tmp_path / "lambdas.cpp", tmp_path / "lambdas", f"-I{ROOT}/include", *LINKED)
    home = Home(tmp_path)
    home.run(tmp_path / "lambdas", KYMO="on")
    found = set(home.column("SELECT name FROM trace.regions"))
    assert sorted(name.replace("<int>", "") for name in found) == ["model::train::<lambda>", "twice::<lambda>"]


# --- Meson -------------------------------------------------------------------------------------------------------

PROJECT = """project('app', 'c')
executable('app', 'app.c', dependencies: dependency('kymo'))
"""
WRAP = "[wrap-file]\ndirectory = kymo\n\n[provide]\ndependency_names = kymo\n"


def test_meson_builds_kymo_as_a_subproject(tmp_path):
    (tmp_path / "meson.build").write_text(PROJECT)
    (tmp_path / "app.c").write_text(documented().replace('"optional.h"', "<kymo/kymo.h>"))
    (tmp_path / "subprojects").mkdir()
    (tmp_path / "subprojects/kymo").symlink_to(ROOT)
    (tmp_path / "subprojects/kymo.wrap").write_text(WRAP)
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path), "PKG_CONFIG_LIBDIR": str(tmp_path)}
    said(["meson", "setup", "--wrap-mode=forcefallback", tmp_path / "out", tmp_path], env=env)
    said(["ninja", "-C", tmp_path / "out"], env=env, seconds=400)
    layers = {path.parent.name for path in (tmp_path / "out/subprojects/kymo/src").rglob("*.o")}
    assert layers == {"libkymo_base.a.p", "libkymo_record.a.p"}
    home = Home(tmp_path)
    home.run(tmp_path / "out/app", KYMO="on")
    assert home.one("SELECT count FROM trace.regions WHERE name = 'tokenize'") == 1


def test_meson_finds_an_installed_kymo(tmp_path):
    (tmp_path / "meson.build").write_text(PROJECT)
    (tmp_path / "app.c").write_text(documented().replace('"optional.h"', "<kymo/kymo.h>"))
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path), "PKG_CONFIG_PATH": str(BUILD / "packaging")}
    said(["meson", "setup", tmp_path / "out", tmp_path], env=env)
    said(["ninja", "-C", tmp_path / "out"], env=env)
    home = Home(tmp_path)
    home.run(tmp_path / "out/app", KYMO="on", LD_LIBRARY_PATH=str(BUILD))
    assert home.one("SELECT count FROM trace.regions WHERE name = 'tokenize'") == 1
