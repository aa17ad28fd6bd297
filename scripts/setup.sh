#!/usr/bin/env bash
# Creates the virtual environment: with uv where it is on PATH, else with venv and pip.
# Everything comes from constraints.txt by hash, as wheels: nothing is built but the
# project itself, and a second run needs no network.
# Usage: [PYTHON=python3.13] scripts/setup.sh VENV
set -euo pipefail
venv=$1
started=$SECONDS

fail() {
  echo "error: $1" >&2
  exit 1
}

recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local name
  for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if command -v "$name" >/dev/null && recent "$name"; then
      echo "$name"
      return
    fi
  done
  if [ -n "${PYTHON:-}" ]; then
    fail "PYTHON=$PYTHON is not a Python 3.11 or newer"
  fi
  fail "Python 3.11 or newer is needed; set PYTHON to one"
}

# A venv that an interrupted run or another tool left without pip is made anew.
usable() { recent "$venv/bin/python" && { [ "$tool" = uv ] || has_pip; }; }
has_pip() { "$venv/bin/python" -m pip --version >/dev/null 2>&1; }

tool=pip
if command -v uv >/dev/null; then tool=uv; fi
if ! usable; then
  python=$(find_python)
  if [ "$tool" = uv ]; then
    uv venv --quiet --clear --python "$(command -v "$python")" "$venv"
  else
    "$python" -m venv --clear "$venv" >/dev/null ||
      fail "$python cannot make a venv; install its venv package (python3-venv)"
  fi
fi
if [ "$tool" = uv ]; then
  install() { uv pip install --quiet --python "$venv/bin/python" "$@"; }
else
  install() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
fi

echo "setup: $("$venv/bin/python" --version) and pinned packages in $venv, with $tool ..."
install --require-hashes --only-binary :all: --requirement constraints.txt ||
  fail "the pinned packages could not be installed (see above)"
install --no-deps --no-build-isolation --editable . ||
  fail "the project could not be installed (see above)"
# Else each start of a command compiles what it imports, where PYTHONDONTWRITEBYTECODE is
# set every time.
"$venv/bin/python" -m compileall -q -j 2 \
  authcallout contracts moorings nodeagent publisher runtime solver
touch "$venv/.ready"
echo "setup: ready after $((SECONDS - started)) s"
