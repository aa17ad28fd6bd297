#!/usr/bin/env bash
# Writes constraints.txt anew: every package of every extra and of the dev group, pinned
# with hashes. Run it after changing dependencies in pyproject.toml.
set -euo pipefail
wanted=$(mktemp)
trap 'rm -f "$wanted"' EXIT
python3 - >"$wanted" <<'PY'
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)
for group in (
    project["build-system"]["requires"],
    project["project"]["dependencies"],
    *project["project"]["optional-dependencies"].values(),
    project["dependency-groups"]["dev"],
):
    print(*(line for line in group if not line.startswith("moorings[")), sep="\n")
PY
{
  echo "# Made by scripts/pin.sh from pyproject.toml; do not edit."
  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-header "$wanted" | sed "s#-r $wanted#pyproject.toml#"
} >constraints.txt
