"""From raw splits to what a network sees: random splits, class numbers, features and normalised values.

Raw samples and labels come in, and tensors come out. Everything estimated from data is estimated only from the training
split, and is kept as plain numbers and text (`Inputs`), so that new data can be prepared in the same way later.
"""
