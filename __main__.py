"""`python -m radixlm`: the command line for people, and the entry of the child processes."""

from __future__ import annotations

import sys


def main() -> int:
    """Run a child's role, or the command line."""
    try:
        from radixlm.runtime.roles import ROLES
        from radixlm.runtime.roles import main as run_role

        if len(sys.argv) > 1 and sys.argv[1] in ROLES:
            return run_role(sys.argv[1:])
        from radixlm.cli import main as run_command_line
    except KeyboardInterrupt:  # Ctrl-C while it is still being imported
        return 130
    run_command_line()
    return 0


if __name__ == "__main__":
    sys.exit(main())
