"""The HTTP API, asked as its users ask it."""
