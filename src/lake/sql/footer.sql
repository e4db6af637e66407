-- Which rows a file of a flush has.
SELECT decode(value)
FROM parquet_kv_metadata({file})
WHERE decode(key) = 'cursors'
