"""A foreign project is built against an installed kymo, that was moved since, with pkg-config and with CMake."""
import json
import os
import shutil

import pytest
from programs import BUILD, ROOT, Home, compiler, said

FOREIGN = ROOT / "tests/foreign/project"
# program, its source, the pkg-config module, what the compiler is told, the zones that it records
PROGRAMS = [
    ("native", "native.c", "kymo", [], {"native work": 7}),
    ("plugin", "plugin.cpp", "kymo-compat", [], {"plugin work": 3}),
    ("marked", "marked.cpp", "kymo-compat", ["-DTRACY_ENABLE"], {"marked work": 5}),
]
PARAMETERS = pytest.mark.parametrize("name,source,module,options,zones", PROGRAMS, ids=[row[0] for row in PROGRAMS])


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Installed for one place, then moved to another, whose name has nothing in common with it."""
    path = tmp_path_factory.mktemp("install")
    said(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", path / "staged"])
    (lib,) = (path / "staged").rglob("libkymo.so")
    shutil.move(lib.parent.parent, path / "moved here")
    (path / "moved here").rename(path / "moved")
    shutil.rmtree(path / "staged")
    return path / "moved"


@pytest.fixture(scope="module")
def cmake_build(prefix, tmp_path_factory):
    if not shutil.which("cmake"):
        pytest.skip("there is no cmake: make setup")
    out = tmp_path_factory.mktemp("cmake")
    said(["cmake", "-S", FOREIGN, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}"])
    said(["cmake", "--build", out])
    return out


def flags(module, path):
    env = {**os.environ, "PKG_CONFIG_PATH": str(path)}
    return said(["pkg-config", "--cflags", module], env=env).split(), said(["pkg-config", "--libs", module], env=env).split()


def zones(home, kymo):
    (recording,) = home.recordings()
    sql = "SELECT name, count FROM trace.regions"
    return {row["name"]: row["count"] for row in json.loads(said([kymo, "query", "-f", "json", recording, sql], env=home.env))}


def recorded(home, program, kymo, **env):
    home.run(program, KYMO="on", VACCEL_PROF_ENABLED="enabled", **env)
    return zones(home, kymo)


@PARAMETERS
def test_pkg_config_of_an_installed_kymo(prefix, tmp_path, name, source, module, options, zones):
    before, after = flags(module, prefix / "lib/pkgconfig")
    said([compiler(source), *options, *before, FOREIGN / source, "-o", tmp_path / name, *after])
    home = Home(tmp_path)
    assert recorded(home, tmp_path / name, prefix / "bin/kymo", LD_LIBRARY_PATH=str(prefix / "lib")) == zones


@PARAMETERS
def test_cmake_finds_an_installed_kymo(prefix, cmake_build, tmp_path, name, source, module, options, zones):
    assert recorded(Home(tmp_path), cmake_build / name, prefix / "bin/kymo") == zones


def test_cmake_names_a_part_that_is_not_there(prefix, tmp_path):
    if not shutil.which("cmake"):
        pytest.skip("there is no cmake: make setup")
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.13)\nproject(p C)\n"
                                             "find_package(kymo REQUIRED COMPONENTS nothing)\n")
    with pytest.raises(AssertionError, match="kymo has no component nothing"):
        said(["cmake", "-S", tmp_path, "-B", tmp_path / "out", f"-DCMAKE_PREFIX_PATH={prefix}"])


@PARAMETERS
def test_pkg_config_of_the_clone(tmp_path, name, source, module, options, zones):
    before, after = flags(module, BUILD / "packaging")
    said([compiler(source), *options, *before, FOREIGN / source, "-o", tmp_path / name, *after, f"-Wl,-rpath,{BUILD}"])
    assert recorded(Home(tmp_path), tmp_path / name, BUILD / "kymo") == zones


def test_models_are_linked_with_another_librarys_name(prefix, tmp_path):
    before, after = flags("kymo-nrt", prefix / "lib/pkgconfig")
    assert "-lnrt" in after and not (prefix / "lib/libnrt.so").exists()
    said(["cc", *before, ROOT / "examples/models/models.c", "-o", tmp_path / "models", *after])
    home = Home(tmp_path)
    home.run(tmp_path / "models", ROOT / "examples/models", tmp_path / "out", LD_LIBRARY_PATH=str(prefix / "lib"), HOME=str(tmp_path))
    sql = "SELECT DISTINCT model FROM device.ops"
    assert json.loads(said([prefix / "bin/kymo", "query", "-f", "json", tmp_path / "out/scale.ntff", sql], env=home.env)) == [
        {"model": "scale"}]


def test_nothing_installed_knows_where_it_was_built(prefix):
    for path in [*prefix.rglob("*.pc"), *prefix.rglob("*.cmake"), *prefix.rglob("*.h"), *prefix.rglob("*.hpp")]:
        assert str(ROOT) not in path.read_text(), path


def test_marked_headers_leave_room_for_those_of_the_real_tools(prefix):
    assert sorted(path.name for path in (prefix / "include").iterdir()) == ["kymo", "kymo-compat"]
    assert (prefix / "include/kymo-compat/tracy/Tracy.hpp").is_file()
    assert (prefix / "include/kymo-compat/vaccel_prof.h").is_file()
    assert (prefix / "include/kymo-compat/nrt/nrt_profile.h").is_file()
