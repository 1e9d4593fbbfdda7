"""The dashboard page."""
