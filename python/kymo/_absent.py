"""The message for a kymo package without its extension. Any Python may import it, so this works in all of them."""
import os
import re
import sys


def sentence():
    # type: () -> str
    here = os.path.dirname(os.path.abspath(__file__))
    source = os.path.dirname(os.path.dirname(here))
    built = [re.match(r"_kymo\.cpython-3(\d+)", name) for name in os.listdir(here)]
    versions = ", ".join("3.%d" % minor for minor in sorted(int(one.group(1)) for one in built if one))
    if not versions and os.path.exists(os.path.join(source, "meson.build")):
        return "%s is kymo's source and has not been built; to install it: cd %s && make && %s -m pip install ." % (
            here, source, sys.executable)
    whom = "Python " + versions if versions else "no Python"
    this = "%s %d.%d" % (sys.implementation.name, sys.version_info[0], sys.version_info[1])
    return ("the kymo in %s was built for %s, not for this Python (%s); "
            "to install it, run in kymo's source: make && %s -m pip install ." % (here, whom, this, sys.executable))
