"""`python -m tracy` is `python -m kymo`."""
from kymo._front import main

main("tracy")
