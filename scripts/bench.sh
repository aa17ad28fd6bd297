#!/usr/bin/env bash
# Runs every benchmark; tables go to the terminal, JSON to build/benchmarks.
# Usage: scripts/bench.sh small|full
set -euo pipefail
mkdir -p build/benchmarks
for file in benchmarks/*.py; do
  name=$(basename "$file" .py)
  [ "$name" = __init__ ] && continue
  echo "== $name"
  .venv/bin/python "$file" --size "$1" --json "build/benchmarks/$name.json"
done
