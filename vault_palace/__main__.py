"""`python -m vault_palace` is the command `vault-palace`."""

import sys

from vault_palace.surfaces.cli import main

if __name__ == "__main__":
    sys.exit(main())
