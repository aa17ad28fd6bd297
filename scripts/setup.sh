#!/usr/bin/env bash
# Creates the virtual environment: with uv where it is on PATH, else with venv and pip.
# It gets what a user needs, from constraints.txt, or with `dev` also what tests and lint
# need, from constraints-dev.txt: by hash, as wheels. Nothing is built but the project
# itself, and a second run needs no network.
# Usage: [PYTHON=python3.13] scripts/setup.sh VENV [dev]
set -euo pipefail
venv=$1
pins=constraints.txt
if [ "${2:-}" = dev ]; then pins=constraints-dev.txt; fi
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
total=$(grep -c '^[a-z].*==' "$pins")
if [ "$tool" = uv ]; then
  install() { uv pip install --python "$venv/bin/python" "$@"; }
  shown() { cat; }
else
  install() { "$venv/bin/python" -m pip install --disable-pip-version-check "$@"; }
  # A line for every tenth package of a log, one line that counts on a terminal.
  shown() {
    local tty=""
    if [ -t 1 ]; then tty=yes; fi
    awk -v total="$total" -v tty="$tty" '
      /^(Collecting|Ignoring|Requirement already)/ { n++ }
      /^(Collecting|Ignoring|Requirement already)/ && tty { printf "\r  %d of %d", n, total; fflush() }
      /^(Collecting|Ignoring|Requirement already)/ && !tty && n % 10 == 0 { print "  " n " of " total; fflush() }
      /^Installing collected packages/ { print (tty ? "\n" : "") "  unpacking them ..."; fflush() }'
  }
fi

echo "setup: $("$venv/bin/python" --version), $total packages of $pins in $venv, with $tool ..."
# The two files name all that is needed, so nothing is looked up beside them.
install --no-deps --require-hashes --only-binary :all: --requirement "$pins" | shown ||
  fail "the pinned packages could not be installed (see above)"
if [ "$pins" = constraints.txt ]; then
  echo "setup: the project itself ..."
  install --quiet --no-deps --no-build-isolation --editable . ||
    fail "the project could not be installed (see above)"
  # Else each start of a command compiles what it imports, where PYTHONDONTWRITEBYTECODE
  # is set every time.
  "$venv/bin/python" -m compileall -q -j 2 \
    authcallout contracts moorings nodeagent publisher runtime solver
fi
echo "setup: ready after $((SECONDS - started)) s"
