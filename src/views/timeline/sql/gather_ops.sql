{include device_lanes}
