"""The documentation site: written pages of the repository and reference pages made from the code.

`python -m scripts.docs_site` builds it. `pages` is the table of contents, `links` fits links to the
site and checks them, `build` puts the pages together and has them rendered, and the other modules
each write one kind of reference page.
"""
