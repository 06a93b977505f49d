"""Figures of many instances, counted in one pass over the outlines of their streams.

samples     many durations in little memory: percentiles, exact or within a stated error
timeline    what began and what ended, by the minute, hour, day or week
tally       counts and times of one workflow, and the paths that instances took
account     outlines to tallies, here or in several processes
figures     the report on workflows: figures_of
advice      what of it is worth a look
charts      the same as pictures
"""
