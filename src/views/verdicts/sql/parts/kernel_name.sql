-- The name of a kernel for people: without its arguments, its return type, anonymous namespaces and
-- the types of numbers in its template (nsys has "<(int)128, (bool)1>").
regexp_replace(
    regexp_replace(
        regexp_replace(
            replace({name}, '(anonymous namespace)::', ''), '\([A-Za-z_: ]+\)(-?[0-9])', '\1', 'g'
        ),
        '^void ',
        ''
    ),
    '\(.*',
    ''
)
