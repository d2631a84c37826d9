"""Readers for the user's own data: tables, image folders, `.npz` files and memory-mapped arrays.

A path comes in. Each split found there comes out as a `RawSplit`: samples (a tensor or a `Table`) and their labels as
they were written, before anything is split at random, numbered or normalised.
"""
