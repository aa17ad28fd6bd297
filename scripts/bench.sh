#!/usr/bin/env bash
# Runs every benchmark; tables go to the terminal, JSON to build/benchmarks.
# Usage: scripts/bench.sh small|full
set -euo pipefail
mkdir -p build/benchmarks
for name in decisions arrivals soak incremental openb scale selectors semantics \
  upstream_rate claim_writes watch_state slices gang_gates cluster_rate \
  cluster_families admin_load; do
  echo "== $name"
  .venv/bin/python -m "benchmarks.$name" --size "$1" --json "build/benchmarks/$name.json"
done
