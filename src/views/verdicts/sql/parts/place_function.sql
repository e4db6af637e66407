-- A place without its line number: all lines of a function count together.
regexp_replace(place, ':[0-9]+\)$', ')')
