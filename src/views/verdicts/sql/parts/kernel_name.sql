-- The name of a kernel for people: without its arguments, its return type and anonymous namespaces.
regexp_replace(
    regexp_replace(replace({name}, '(anonymous namespace)::', ''), '^void ', ''),
    '\(.*',
    ''
)
