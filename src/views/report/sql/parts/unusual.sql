-- What a phase took above its median; NULL if no phases are recorded.
CASE WHEN known THEN {phase} - median({phase}) OVER () END
