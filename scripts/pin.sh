#!/usr/bin/env bash
# Writes constraints.txt anew: every package of every extra and of the dev group, pinned
# with hashes for Python 3.11 and newer. Run it after changing dependencies in
# pyproject.toml; what is pinned stays as it is unless --upgrade says otherwise.
# Usage: scripts/pin.sh [--upgrade | --upgrade-package NAME]
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v uv >/dev/null; then
  echo "error: pinning needs uv on PATH" >&2
  exit 1
fi
uv pip compile pyproject.toml --all-extras --group dev --quiet \
  --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-emit-find-links --no-emit-package moorings \
  --custom-compile-command "scripts/pin.sh" --output-file constraints.txt "$@"
