"""The commands of `verydeep`: one file per command, imported only when that command is called.

Each has a `main(arguments)` that takes what was typed after the command's name and returns an exit code. Options are
dataclasses read by `verydeep.cli._options`; what the terminal shows during long work is in `verydeep.cli.views`.
"""
