"""Specialist routing and honest, durable coding loops for Hermes Agent."""
