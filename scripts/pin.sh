#!/usr/bin/env bash
# Writes anew, pinned with hashes for Python 3.11 and newer:
# - constraints.txt: every package of every extra, and the build backend;
# - constraints-dev.txt: what the dev group adds.
# Run it after changing dependencies in pyproject.toml; what is pinned stays as it is
# unless --upgrade says otherwise.
# Usage: scripts/pin.sh [--upgrade | --upgrade-package NAME]
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v uv >/dev/null; then
  echo "error: pinning needs uv on PATH" >&2
  exit 1
fi

pin() { # FILE ARGUMENTS...
  local file=$1
  shift
  uv pip compile pyproject.toml --all-extras --quiet --universal --python-version 3.11 \
    --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-package moorings \
    --custom-compile-command "scripts/pin.sh" --output-file "$file" "$@"
}

pin constraints.txt --group build "$@"
pinned=()
for name in $(grep -oE '^[A-Za-z0-9._-]+==' constraints.txt | tr -d = | sort -u); do
  pinned+=(--no-emit-package "$name")
done
pin constraints-dev.txt --group dev --constraint constraints.txt "${pinned[@]}" "$@"
