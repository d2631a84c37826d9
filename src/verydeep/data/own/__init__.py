"""Readers for the user's own data: tables, image folders, `.npz` files, memory-mapped arrays, DataFrames and arrays.

A path, or data in memory, comes in. Each split found there comes out as a `RawSplit`: samples (a tensor or a `Table`)
and their labels as they were written, before anything is split at random, numbered or normalised.
"""
