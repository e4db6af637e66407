-- The place of a row of trace.critical_path or device.idle: the function of own code, or else the
-- torch module, the operator around it, {name}. Functions of torch tell less than these.
CASE
    WHEN function IS NOT NULL AND line > 0 AND NOT starts_with(file, 'torch/')
    THEN function || ' (' || file || ':' || line || ')'
    ELSE coalesce(module, zone, nullif({name}, 'between operators'))
END
