"""python -m dba3c.report runs/breakout runs/pong"""

import sys

from dba3c.report import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
