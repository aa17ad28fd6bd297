#!/usr/bin/env bash
# Creates the virtual environment: with uv where it is, else with venv and pip.
# Usage: scripts/setup.sh VENV
set -euo pipefail
venv=$1
started=$SECONDS

find_python() {
  for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$name" >/dev/null &&
      "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  echo "error: Python 3.11 or newer is needed; set PYTHON to one" >&2
  exit 1
}

python=$(find_python)
if command -v uv >/dev/null; then
  echo "setup: $venv with uv and $("$python" --version)"
  [ -x "$venv/bin/python" ] || uv venv --quiet --python "$python" "$venv"
  install() { uv pip install --quiet --python "$venv/bin/python" "$@"; }
else
  echo "setup: $venv with pip and $("$python" --version)"
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
  install() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
fi
install --require-hashes --requirement constraints.txt
install --no-deps --no-build-isolation --editable .
touch "$venv/.ready"
echo "setup: ready after $((SECONDS - started)) s"
