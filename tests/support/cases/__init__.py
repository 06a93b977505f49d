"""A real year of cases, made up: the same for the same seed, and as many as one likes.

machines    states, inputs and what leads where, drawn by lot; as Python source, and as a workflow
logs        cases that went through a machine: their inputs, times, actors and attributes, and their rows
filling     cases into a SQLite file, row by row, or into any store by commits
plain       figures of cases, computed plainly
"""
