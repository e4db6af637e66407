-- A zone or region that imports a module: by Python, or named "import …" by the program.
(name = '_find_and_load' OR starts_with(name, 'import '))
