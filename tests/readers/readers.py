"""How others read a folder of a lake: each function takes the folder and the pattern of its files, and returns all rows as a
pyarrow.Table. docs/lake.md has the same lines."""
import os

PACKAGES = {"pyarrow": "pyarrow", "pandas": "pandas", "polars": "polars", "chdb": "chdb", "datafusion": "datafusion", "daft": "daft",
            "sail": "pysail"}
os.environ["DAFT_PROGRESS_BAR"] = "0"
_sail = []


def read_pyarrow(folder, pattern):
    import pyarrow.dataset

    return pyarrow.dataset.dataset(folder, partitioning="hive").to_table()


def read_pandas(folder, pattern):
    import pandas
    import pyarrow

    frame = pandas.read_parquet(folder, dtype_backend="pyarrow")
    return pyarrow.Table.from_pandas(frame, preserve_index=False)


def read_polars(folder, pattern):
    import polars

    return polars.scan_parquet(f"{folder}/{pattern}", hive_partitioning=pattern.startswith("*/")).collect().to_arrow()


def read_chdb(folder, pattern):
    import chdb

    return chdb.query(f"SELECT * FROM file('{folder}/{pattern}', Parquet)", "ArrowTable")


def read_datafusion(folder, pattern):
    import datafusion
    import pyarrow

    parts = [("run", pyarrow.string())] if pattern.startswith("*/") else []
    return datafusion.SessionContext().read_parquet(folder, table_partition_cols=parts).to_arrow_table()


def read_daft(folder, pattern):
    import daft

    return daft.read_parquet(f"{folder}/{pattern}", hive_partitioning=pattern.startswith("*/")).to_arrow()


def read_sail(folder, pattern):
    """Spark's own client, to Sail's server in this process."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    if not _sail:
        server = SparkConnectServer()
        server.start()
        _sail[:] = [SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate(), server]
    return _sail[0].read.parquet(folder).toArrow()


READERS = {name.removeprefix("read_"): read for name, read in list(globals().items()) if name.startswith("read_")}


def stop():
    if _sail:
        _sail[0].stop()
        _sail[1].stop()
        _sail.clear()
