"""Terminal output of the commands, while they run and when they are done.

A view takes results or progress from the library and prints them: live tables and bars on a terminal, plain lines to a
file or pipe. Views only format what a result holds; they compute nothing new.
"""
