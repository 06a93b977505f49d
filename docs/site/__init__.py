"""How the documentation becomes a site: `make docs`, or `python -m docs.site`.

    names.py      docs/reference/api.md: every public name, from the code
    tables.py     docs/reference/tables.md: every table and column, from the stores' SQL
    content.py    docs/reference/content.md: every place where content is kept or shown, and what is said of each
    places.py     which places those are, as the code has them
    figures.py    what pages say of speed and size, from bench/RESULTS.md
    routes.py     every route of HTTP with what it takes and answers, for the site
    studio_types.py  studio/src/documents.ts: what the server answers, as types for the studio's page
    staging.py    the pages as Sphinx wants them: links into the code lead to views of it, indexes become menus
    asking.py     what would make a browser ask somebody else
    conf.py       Sphinx's own settings
    __main__.py   writes these, stages, builds; warnings are errors

On a forge the same pages are read as they are: nothing in them is written for Sphinx. Nothing is fetched while the site
is built, and nothing from elsewhere is asked for by a page that was built.
"""
