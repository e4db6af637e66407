-- The function of a place without its file. A generator or lambda has the name of the function
-- that it stands in, as in where.c.
regexp_replace(
    regexp_extract(place, '^(.*?) \(', 1),
    '((\.<locals>)?\.<(genexpr|listcomp|dictcomp|setcomp|lambda)>)+$',
    ''
)
