-- A pattern for frames of Python: of a file of Python, or of a module without one, as <frozen os>.
'(?:\.pyw?|\.pyx|\(<.*>):[0-9]+\)$'
