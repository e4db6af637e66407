"""What is built and installed is hardened: read from the ELF files."""
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def ours(folder):
    """Programs and libraries of kymo below the folder. DuckDB comes as it is."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and "libduckdb" not in path.name and
                  is_elf(path))


def built():
    """The files of build/ that are installed, under their own names."""
    top = [path for path in BUILD.iterdir() if path.name in ("kymo", "probing", "tracy") or path.name.startswith("libkymo")]
    every = [*top, *(BUILD / "python/kymo").rglob("*.so")]
    return sorted(path for path in every if path.is_file() and not path.is_symlink() and is_elf(path))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    words = re.search(r"meson install -C build (.*)", (ROOT / "Makefile").read_text()).group(1).split()
    done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", *words, "--destdir", folder],
                          capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return ours(folder)


def read(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True).stdout


def lacks(path):
    """What the file is without."""
    head, dynamic = read(path, "-lh"), read(path, "-d")
    stack = re.search(r"GNU_STACK\s.*?\s([RWE ]{3})\s+0x", head)
    missing = {
        "position independence": "Type:" in head and re.search(r"Type:\s+DYN", head),
        "RELRO": "GNU_RELRO" in head,
        "BIND_NOW": re.search(r"FLAGS_1?\).*\bNOW\b|BIND_NOW", dynamic),
        "a stack that is not executable": stack and "E" not in stack.group(1),
        "no text relocations": "TEXTREL" not in dynamic,
        "no writable and executable segment": not re.search(r"LOAD\s.*\sRWE\s", head),
        "no search path of the build": not re.search(r"(?:RPATH|RUNPATH).*\[(?!\$ORIGIN)", dynamic),
    }
    return [what for what, there in missing.items() if not there]


def test_every_built_file_is_hardened():
    files = built()
    assert {"kymo", "probing", "tracy"} < {path.name for path in files} and len(files) > 8
    assert {path.name: lacks(path) for path in files if lacks(path)} == {}


def test_every_installed_file_is_hardened(installed):
    assert {path.name for path in installed} == {path.name for path in built()}
    assert {path.name: lacks(path) for path in installed if lacks(path)} == {}


def undefined(path):
    rows = (line.split() for line in read(path, "--dyn-syms").splitlines())
    return {row[7].split("@")[0] for row in rows if len(row) > 7 and row[6] == "UND"}


def is_optimised():
    options = subprocess.run(["meson", "introspect", "--buildoptions", BUILD], capture_output=True, text=True, check=True).stdout
    return '"optimization", "value": "0"' not in options


def test_the_stack_and_the_buffers_are_checked_by_the_compiler():
    if not is_optimised():
        pytest.skip("build/ is not optimised: there is no FORTIFY")
    names = {path.name: undefined(path) for path in built()}
    begins = ("libkymo.so", "libkymo_compat", "_kymo", "_torch", "_trace")
    libraries = [name for name in names if name == "kymo" or name.startswith(begins)]
    assert len(libraries) > 4
    assert [name for name in libraries if "__stack_chk_fail" not in names[name]] == []
    assert [name for name in libraries if not any(symbol.endswith("_chk") for symbol in names[name])] == []


def test_indirect_calls_may_only_land_on_functions():
    """CET: the entry of each exported function of libkymo is a landing pad."""
    path = next(path for path in built() if path.name.startswith("libkymo.so"))
    if "X86-64" not in read(path, "-h"):
        pytest.skip("not x86-64")
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
    entries = re.findall(r"^[0-9a-f]+ <(kymo_\w+)>:\n\s*[0-9a-f]+:\s+(\w+)", code, re.M)
    assert len(entries) > 20
    assert [name for name, instruction in entries if instruction != "endbr64"] == []


# --- what they export -------------------------------------------------------------------------------------------

# The names that are the point of a library: those of other recorders, of the ICD loader, of malloc.
EXPORTS = {
    "libkymo.so": r"kymo_\w+|kymo__\w+",
    "libkymo_memory": r"kymo_\w+|kymo__\w+|malloc|calloc|realloc|reallocarray|free|posix_memalign|aligned_alloc|memalign|valloc|"
                      r"pvalloc|malloc_usable_size|mmap|mmap64|munmap|mremap|dlopen|dlclose|_Z(?:nw|na|dl|da)\w+",
    "libkymo_compat": r"kymo_\w+|kymo__\w+|nrt_\w+|vaccel_\w+",
    "libkymo_itt": r"__itt_api_init",
    "libkymo_nvtx": r"InitializeInjectionNvtx(2|Extension)?",
    "libkymo_nrt": r"nrt_(load|load_collectives|unload|execute|execute_repeat|tensor_(allocate|free|read|write))",
    "libkymo_opencl": r"cl(?:GetLayerInfo|InitLayer|DeinitLayer)",
    "_": r"PyInit__\w+",
}


def exported(path):
    rows = (line.split() for line in read(path, "--dyn-syms").splitlines())
    return {row[7].split("@")[0] for row in rows if len(row) > 7 and row[4] in ("GLOBAL", "WEAK") and row[6] not in ("UND", "Ndx")}


def test_libraries_export_the_names_that_they_are_for_and_no_others():
    found = {}
    for path in built():
        allowed = next((words for begin, words in EXPORTS.items() if path.name.startswith(begin)), None)
        if allowed:
            names = exported(path)
            assert names, path
            found[path.name] = sorted(name for name in names if not re.fullmatch(allowed, name))
    assert len(found) > 4
    assert {name: names for name, names in found.items() if names} == {}
