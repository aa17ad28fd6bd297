#!/usr/bin/env bash
# Runs every benchmark; tables go to the terminal, JSON to build/benchmarks.
# Usage: scripts/bench.sh small|full
set -euo pipefail
mkdir -p build/benchmarks
console=$(command -v chromium >/dev/null && echo console.pictures || true) # needs a browser
kueue=$(bash scripts/kueue.sh --cached 2>/dev/null | grep -q . && echo cluster.kueue || true)
for name in bus.decisions bus.arrivals bus.soak solver.incremental solver.metrics openb \
  solver.scale solver.selectors solver.semantics solver.upstream_rate solver.worlds \
  cluster.claim_writes cluster.watch_state cluster.slices cluster.gang_gates \
  cluster.rate cluster.families cluster.admin_load $kueue $console; do
  echo "== $name"
  .venv/bin/python -m "benchmarks.$name" --size "$1" --json "build/benchmarks/$name.json"
done
