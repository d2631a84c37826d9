"""What the terminal shows while a command works and when it is done.

A view takes results or progress from the library and prints them: live tables and bars for people, plain lines when the
output is not a terminal. Views compute nothing that a result does not already hold.
"""
