"""A study: the trials of a search and the attempts at them, kept in a storage.

`_open` starts a study in a folder or opens one that exists, `_study` reads its trials, and `_claim` is what workers do
with them: claim a trial, report its epochs, record its result or release it. A search configuration goes in; trials
with their settings and results come out.
"""
