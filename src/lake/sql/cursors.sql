-- How far the streams of a recording are in the lake, as its last flush has written it.
SELECT stream, table_name, next_row, in_lake, lost
FROM read_parquet({file})
