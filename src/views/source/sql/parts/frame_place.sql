-- A pattern for the file and the line of a frame: function (file:line).
' \((.*):([0-9]+)\)$'
