"""Documentation of workflows, written from what is known of them: a page for each, and an index.

blocks     what a page is made of: headings, texts, tables, diagrams
subject    all that is known of a workflow, in one place
pages      the sections of a page, and the index
stories    instances that ended, told as examples
markdown   a page as Markdown, with Mermaid
html       a page as HTML that needs nothing beside it
files      pages into a directory: each whole or not at all, and none left that is not true any more
"""
