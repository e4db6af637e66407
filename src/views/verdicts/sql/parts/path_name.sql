-- The name of a row of trace.critical_path for people: kernels without their arguments, built-in
-- methods without the address of their object.
CASE
    WHEN kind IN ('kernel', 'collective')
    THEN {include kernel_name name=name}
    ELSE regexp_replace(name, ' object at 0x[0-9a-f]+', '')
END
