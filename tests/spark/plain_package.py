"""kymo.spark without the extensions of the package, which are built for other Pythons than that of pyspark."""

import importlib.util
import pathlib
import sys
import types

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python/kymo"


def load(program):
    """The module, with the program that its attach() calls."""
    package = types.ModuleType("kymo_spark_test")
    package.__path__ = [str(PACKAGE)]
    sys.modules["kymo_spark_test"] = package
    query = types.ModuleType("kymo_spark_test._query")
    query.find_program = lambda: str(program)
    sys.modules["kymo_spark_test._query"] = query
    spec = importlib.util.spec_from_file_location("kymo_spark_test.spark", PACKAGE / "spark.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
