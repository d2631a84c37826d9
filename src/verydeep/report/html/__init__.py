"""The report: one HTML page about a run that needs no network access and no other file.

`_page` takes a run and the results of its analysis and fills the templates in `page/`, which also has the page's style
and scripts. The other files prepare its sections: sentences, tables, line charts and heat maps.
"""
