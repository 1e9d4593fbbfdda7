"""A small shop's prices."""
