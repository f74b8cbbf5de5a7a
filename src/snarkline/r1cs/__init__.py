"""Constraint systems and witnesses: the seam between circuits and provers."""
