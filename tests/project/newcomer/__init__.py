"""A newcomer who has the tutorial and a wheel, and does what stands there, block by block.

pages.py      reads the chapters: files to write, parts of files to change, commands with what they print
merging.py    changes parts of a file as a reader would
newcomer.py   does it all in a folder of its own, and holds what is printed against the page
__main__.py   `python -m tests.project.newcomer` writes what is printed into the chapters
"""
