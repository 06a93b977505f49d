"""The studio in a real browser, on real files."""
