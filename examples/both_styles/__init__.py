"""The same processes in both styles: as a flow, and as decide and evolve.

Each pair does the same, is tested side by side, and is whole: its lines can be counted against each other's.
"""
