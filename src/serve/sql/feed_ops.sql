{include device_lanes}
ORDER BY start_ns
