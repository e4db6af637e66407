"""`python -m kymo`: see kymo._front."""
from kymo._front import main

main("kymo")
