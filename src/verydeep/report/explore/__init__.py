"""The interactive page: one HTML file in which a run's network answers for samples, drawings and rows.

`_page` writes it. `_network` describes the network for the page's engine, `_samples` chooses the samples, `_inputs`
describes how raw values are prepared, and `_importance` finds out which layers matter. `page/` has the page itself:
`engine.js` computes the network, `prepare.js` its input, and the other files draw and react.
"""
