"""python -m dba3c.bench parts | pipeline"""

import sys

from dba3c.bench import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
