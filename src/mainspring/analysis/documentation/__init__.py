"""Documentation of workflows, written from what is known of them: a page for each, and an index.

blocks     what a page is made of: headings, texts, tables, diagrams
subject    all that is known of a workflow, in one place
pages      the sections of a page, the index, and how they are written into a directory
stories    instances that ended, told as examples
markdown   a page as Markdown, with Mermaid
html       a page as HTML that needs nothing beside it
"""
