-- A place without its line number: all lines of a function count together, and so do generators
-- and lambdas with the function that they stand in.
regexp_replace(
    place,
    '((\.<locals>)?\.<(genexpr|listcomp|dictcomp|setcomp|lambda)>)* (\(.*):[0-9]+\)$',
    ' \4)'
)
