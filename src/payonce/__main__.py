"""``python -m payonce`` is the command ``payonce``."""

from payonce.cli.main import main

if __name__ == "__main__":
    main()
