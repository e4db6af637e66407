{include critical_lanes}
