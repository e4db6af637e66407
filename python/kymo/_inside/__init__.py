"""Recordings that a program makes of itself, and where they are shown."""
