"""Sphinx's settings. Everything that a page needs lies beside it: no font, script or picture comes from elsewhere."""

project = "mainspring"
copyright = "the maintainers of mainspring"
extensions = ["myst_parser"]
root_doc = "index"
html_theme = "furo"
html_title = "mainspring"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_theme_options = {"navigation_with_keys": True}
language = "en"
myst_enable_extensions: list[str] = []
myst_heading_anchors = 4
nitpicky = True
suppress_warnings = [
    "misc.highlighting_failure",  # streams, tables and mixed output are shown as they are
    "myst.header",  # a page may begin its sections at any depth
]
