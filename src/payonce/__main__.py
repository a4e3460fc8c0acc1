"""``python -m payonce``: the command line, with the interpreter that runs this."""

from payonce.cli.main import main

main()
