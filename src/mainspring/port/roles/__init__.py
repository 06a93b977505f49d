"""The verbs of the port by role: a store is the sum of them, and each can be read, and written, by itself."""
