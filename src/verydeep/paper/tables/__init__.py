"""Tables 1, 2 and 3 of the paper: the convolutional networks on MNIST, CIFAR-10 and CIFAR-100.

`_rows` holds the published rows. `_study` trains them as a study and records every epoch through `_results`;
`_time_left` estimates how long the rest takes. `_page` writes the tables as Markdown, with our numbers next to the
published ones.
"""
