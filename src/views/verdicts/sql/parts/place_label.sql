-- The most frequent line of a group of places, as function (file:line) without the directory.
regexp_replace(
    mode(place),
    '((\.<locals>)?\.<(genexpr|listcomp|dictcomp|setcomp|lambda)>)* \((.*/)?([^/]*)\)$',
    ' (\5)'
)
