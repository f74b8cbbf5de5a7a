"""Ready-made gadgets."""
