-- The most frequent line of a group of places, as function (file:line) without the directory.
regexp_replace(mode(place), '\((.*/)?([^/]*)\)$', '(\2)')
