"""The same small shop inside four web frameworks: an order's row and its message in one transaction."""
