-- The end of a file's path, which tells functions of the same name apart; with the package if the
-- file is an __init__.py. facts_place() does the same.
regexp_extract(file, '[^/]*(/__init__[.]py)?$')
