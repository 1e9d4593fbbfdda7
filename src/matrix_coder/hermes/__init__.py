"""The host: hooks, tools, boards and commands, each a thin adapter."""
