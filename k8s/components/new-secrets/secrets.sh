#!/usr/bin/env bash
# Certificates and passwords of NATS: what k8s/base needs and no repository should hold.
#
#   bash k8s/secrets.sh FOLDER STEP
#
# keeps everything in FOLDER and writes the Secrets that follow from it to
# FOLDER/secrets.yaml, to be applied with `kubectl apply --server-side`:
#   nats-tls          certificates
#   nats-passwords    what NATS alone reads: all passwords
#   nats-user-NAME    what that user presents: `login:password`, one of its two
# The authority's key stays in FOLDER (authority.key) and is in no Secret.
#
#   new      makes everything, keys of the auth callout in callout.yaml too; FOLDER must
#            not hold any yet
#   renew    a new certificate of the same authority
# and, one after the other, for a new authority and new passwords without a stop:
#   begin    trust in a second authority, and a new password for each login not in use
#   switch   its certificate, and the new logins
#   end      trust in it alone; the old logins get passwords that nobody knows
#
# What NATS and the services do between the steps is in docs/operate.md.
# Needs openssl. NAMESPACE, DAYS (of a certificate) and AUTHORITY_DAYS can be set.
set -euo pipefail
namespace=${NAMESPACE:-moorings-system}
days=${DAYS:-365}
authority_days=${AUTHORITY_DAYS:-3650}
users="solver publisher nodeagent platform viewer"
umask 077

fail() {
  echo "secrets: $1" >&2
  exit 1
}

[ $# -eq 2 ] || fail "usage: bash k8s/secrets.sh FOLDER new|renew|begin|switch|end"
folder=$1 step=$2
scripts=$(cd "$(dirname "$0")" && pwd)

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }
base64_of() { openssl base64 -A <"$1"; }
# A letter first: nats-server would read digits as a number.
password() { echo "p$(openssl rand -hex 24)"; }
other() { if [ "$1" = a ]; then echo b; else echo a; fi; }

make_authority() { # NAME: NAME.key and NAME.crt
  key "$1.key"
  openssl req -x509 -new -key "$1.key" -days "$authority_days" -out "$1.crt" \
    -subj "/CN=moorings $(openssl rand -hex 4)" -addext basicConstraints=critical,CA:TRUE \
    -addext keyUsage=critical,keyCertSign
}

make_certificate() { # by the authority
  local service=nats.$namespace.svc
  cat >extensions <<EXTENSIONS
subjectAltName = DNS:$service, DNS:*.$service, DNS:localhost, IP:127.0.0.1
extendedKeyUsage = serverAuth, clientAuth
EXTENSIONS
  key tls.key
  openssl req -new -key tls.key -subj "/CN=nats" -out tls.csr
  openssl x509 -req -in tls.csr -CA authority.crt -CAkey authority.key -days "$days" \
    -set_serial "0x$(openssl rand -hex 16)" -extfile extensions -out tls.crt 2>/dev/null
  rm extensions tls.csr
}

make_passwords() { # SLOT: of that login of each user
  local user
  for user in $users; do password >"$user.$1"; done
}

secret() { # NAME TYPE
  echo "---"
  echo "apiVersion: v1"
  echo "kind: Secret"
  echo "metadata: {name: $1, namespace: $namespace}"
  echo "type: $2"
}

write_secrets() {
  local slot user
  secret nats-tls kubernetes.io/tls
  echo "data:"
  echo "  ca.crt: $(cat authority.crt previous.crt next.crt 2>/dev/null | openssl base64 -A)"
  echo "  tls.crt: $(base64_of tls.crt)"
  echo "  tls.key: $(base64_of tls.key)"
  secret nats-passwords Opaque
  echo "stringData:"
  echo "  passwords.conf: |"
  for user in $users; do
    for slot in a b; do
      echo "    ${user^^}_${slot^^}_PASSWORD: $(cat "$user.$slot")"
    done
  done
  for user in $users; do
    secret "nats-user-$user" Opaque
    echo "stringData:"
    echo "  password: $user.$slot_in_use:$(cat "$user.$slot_in_use")"
  done
}

between() { # STATE WORDS: each step is done once, in its order
  [ "$(cat round)" = "$1" ] || fail "$step: $2"
}

if [ "$step" = new ]; then
  mkdir -p "$folder" && cd "$folder"
  [ ! -e round ] || fail "new: $folder holds what runs; begin, switch and end replace it"
  echo a >slot
  make_authority authority
  make_certificate
  make_passwords a
  make_passwords b
  NAMESPACE=$namespace bash "$scripts/callout-secrets.sh" >callout.yaml
  echo none >round
else
  cd "$folder" && [ -e round ] || fail "$step: $folder holds nothing yet: new"
fi
slot_in_use=$(cat slot)
case $step in
new) ;;
renew)
  between none "a round has begun; its switch makes a new certificate"
  make_certificate
  ;;
begin)
  between none "a round has begun already"
  make_authority next
  make_passwords "$(other "$slot_in_use")"
  echo begun >round
  ;;
switch)
  between begun "comes after begin"
  mv authority.crt previous.crt
  mv next.crt authority.crt
  mv next.key authority.key
  make_certificate
  slot_in_use=$(other "$slot_in_use")
  echo "$slot_in_use" >slot
  echo switched >round
  ;;
end)
  between switched "comes after switch"
  rm previous.crt
  make_passwords "$(other "$slot_in_use")"
  echo none >round
  ;;
*) fail "no step $step: new, renew, begin, switch or end" ;;
esac
write_secrets >secrets.yaml
