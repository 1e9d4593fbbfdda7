"""The mind: pure decisions. No clock, environment, randomness, logging, host or database."""
