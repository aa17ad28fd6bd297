#!/usr/bin/env bash
# Makes the keys of the auth callout (k8s/components/tokens). Prints two Secrets:
#   nats-callout       what NATS alone reads: public keys, and the callout's passwords
#   authcallout-keys   what the callout alone reads: seeds, and one of its passwords
#
#   bash k8s/callout-secrets.sh | kubectl apply --server-side -f -   # else a copy stays in an annotation
#
# Each run makes all of it anew; restart NATS and the callout afterwards. Whoever has the
# issuer's seed makes users of the bus. Needs openssl 1.1.1 or newer; NAMESPACE can be set.
set -euo pipefail
namespace=${NAMESPACE:-moorings-system}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
umask 077

hex() { tail -c 32 | od -An -v -tx1 | tr -d ' \n'; } # the key itself is last in its DER
base32=ABCDEFGHIJKLMNOPQRSTUVWXYZ234567

# Writes bytes, given in hexadecimal, as NATS does keys: base32, with their CRC-16.
nkey() {
  local text=$1 crc=0 value=0 bits=0 byte i
  for ((i = 0; i < ${#text}; i += 2)); do
    crc=$((crc ^ 0x${text:i:2} << 8))
    for _ in 1 2 3 4 5 6 7 8; do
      crc=$(((crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xFFFF))
    done
  done
  text+=$(printf '%02x%02x' $((crc & 0xFF)) $((crc >> 8)))
  for ((i = 0; i < ${#text}; i += 2)); do
    byte=0x${text:i:2} value=$(((value << 8 | byte) & 0xFFF)) bits=$((bits + 8))
    for (( ; bits >= 5; bits -= 5)); do
      printf %s "${base32:value >> bits - 5 & 31:1}"
    done
  done
  if ((bits)); then printf %s "${base32:value << 5 - bits & 31:1}"; fi
}

# An account (A...) signs with Ed25519, a curve key (X...) seals with X25519.
openssl genpkey -algorithm ed25519 -outform DER -out issuer
openssl genpkey -algorithm x25519 -outform DER -out curve
public() { openssl pkey -inform DER -in "$1" -pubout -outform DER | hex; }
a=p$(openssl rand -hex 24) b=p$(openssl rand -hex 24)

cat <<SECRETS
apiVersion: v1
kind: Secret
metadata: {name: nats-callout, namespace: $namespace}
type: Opaque
stringData:
  callout.conf: |
    AUTHCALLOUT_ISSUER: $(nkey "00$(public issuer)")
    AUTHCALLOUT_XKEY: $(nkey "b8$(public curve)")
    AUTHCALLOUT_A_PASSWORD: $a
    AUTHCALLOUT_B_PASSWORD: $b
---
apiVersion: v1
kind: Secret
metadata: {name: authcallout-keys, namespace: $namespace}
type: Opaque
stringData:
  issuer: $(nkey "9000$(hex <issuer)")
  curve: $(nkey "95c0$(hex <curve)")
  password: authcallout.a:$a
SECRETS
