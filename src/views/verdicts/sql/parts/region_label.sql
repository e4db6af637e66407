-- A name as tables show it, in a query that groups by name and source: with the class of a torch
-- module whose own name is a number, as in layers.0 (Linear). facts.c does the same without SQL.
CASE
    WHEN source = 'torch' AND regexp_matches(name, '(^|\.)[0-9]+$') AND min(file) = max(file)
    THEN name || ' (' || min(file) || ')'
    ELSE name
END
