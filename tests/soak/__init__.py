"""`make soak`: every proof in its long form, one after the other, and a report of one page.

A part is a program of its own that ends with exit code 1 on a violation, and whose standard output closes with its
lines of the report: a heading (`## …`) and what stands behind it.
"""
