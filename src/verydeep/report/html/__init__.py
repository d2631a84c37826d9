"""The report: one HTML page about a run that needs no network and no other file.

`_page` takes a run and the results of its analysis; the other files prepare sections, sentences, tables, charts and
heat maps. The templates, styles and scripts that the page is made from are in `page/`.
"""
