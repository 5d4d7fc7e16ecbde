"""Configuration of Sphinx: pages of docs/, and a reference of the public names from their docstrings; `make html`."""

import cyxla

project = "cyxla"
version = release = cyxla.__version__
extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_parser"]
root_doc = "api/index"
exclude_patterns = ["adr/README.md"]
default_role = "code"
html_theme = "alabaster"
html_theme_options = {"description": cyxla.__doc__.splitlines()[0].partition(": ")[2], "fixed_sidebar": True}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
myst_heading_anchors = 3
suppress_warnings = ["myst.header", "myst.xref_missing", "toc.not_included"]
