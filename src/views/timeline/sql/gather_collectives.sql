{include collective_lanes}
