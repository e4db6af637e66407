-- A stack in an import.
contains(array_to_string(stack, ';'), '_find_and_load')
