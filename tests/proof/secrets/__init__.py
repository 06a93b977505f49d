"""Secrets that are marked, written through every way there is, and looked for byte by byte."""
