-- Operations of devices from the first step after warm-up on: name and duration.
SELECT
    CASE WHEN kind = 'kernel' THEN {include kernel_name name=name} ELSE name END,
    end_ns - start_ns
FROM device.ops
WHERE kind NOT IN ('execution', 'module', 'marker', 'barrier')
    AND start_ns >= {from}
    AND end_ns > start_ns
ORDER BY start_ns
