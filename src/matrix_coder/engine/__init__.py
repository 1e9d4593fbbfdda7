"""The hands: the durable engine, the store and every side effect."""
