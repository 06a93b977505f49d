"""A handler in another language: Node. See README.md."""
