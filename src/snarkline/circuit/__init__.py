"""Circuits written in Python: recorded once, as templates, before there are values."""
