#!/bin/sh
# Lists the network cards of this machine for Moorings, as one JSON object.
# Its argument is where sysfs is mounted.
set -eu
root=${1:-/sys}

read_file() { cat "$1" 2>/dev/null || echo "$2"; }

separator=
printf '{"devices": ['
for folder in "$root"/class/net/*; do
  [ -e "$folder/device" ] || continue # lo, bridges and the like are no cards
  interface=${folder##*/}
  case $interface in
  *[!a-z0-9-]*)
    echo "$interface cannot be the name of a device" >&2
    continue
    ;;
  esac
  module=$(readlink "$folder/device/driver" || echo unknown)
  printf '%s\n{"name": "%s", "attributes": {' "$separator" "$interface"
  printf '"address": "%s", ' "$(read_file "$folder/address" unknown)"
  printf '"kernelDriver": "%s", ' "${module##*/}"
  printf '"mtu": %d}, ' "$(read_file "$folder/mtu" 0)"
  printf '"edits": {"env": ["NIC=%s"]}' "$interface"
  if [ "$(read_file "$folder/carrier" 0)" != 1 ]; then
    printf ', "health": {"symptom": "Bad", "reason": "LinkDown", "message": "no carrier"}'
  fi
  printf '}'
  separator=,
done
printf '\n]}\n'
