#!/usr/bin/env bash
# Makes what k8s/base needs and no repository should hold: a certificate authority and a
# certificate for NATS, and two passwords for each user of the bus. Prints Secrets:
#   nats-tls          certificates
#   nats-passwords    what NATS alone reads: all passwords
#   nats-user-NAME    what that user presents: `login:password`, one of its two
#
#   bash k8s/secrets.sh | kubectl apply --server-side -f -   # else a copy stays in an annotation
#
# Each run makes everything anew; restart the pods of moorings-system afterwards.
# Needs openssl. NAMESPACE and DAYS can be set.
set -euo pipefail
namespace=${NAMESPACE:-moorings-system}
days=${DAYS:-3650}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
umask 077

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }
base64_of() { openssl base64 -A <"$1"; }

key ca.key
openssl req -x509 -new -key ca.key -days "$days" -subj "/CN=moorings" -out ca.crt \
  -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
key tls.key
openssl req -new -key tls.key -subj "/CN=nats" -out tls.csr
service=nats.$namespace.svc
cat >extensions <<EXTENSIONS
subjectAltName = DNS:$service, DNS:*.$service, DNS:localhost, IP:127.0.0.1
extendedKeyUsage = serverAuth, clientAuth
EXTENSIONS
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days "$days" \
  -extfile extensions -out tls.crt 2>/dev/null

# The key of the authority is thrown away: nothing else is ever signed with it.
cat <<SECRETS
apiVersion: v1
kind: Secret
metadata: {name: nats-tls, namespace: $namespace}
type: kubernetes.io/tls
data:
  ca.crt: $(base64_of ca.crt)
  tls.crt: $(base64_of tls.crt)
  tls.key: $(base64_of tls.key)
SECRETS

# Two logins a user, so that one password can be replaced while the other is in use.
passwords="" users=""
for user in solver publisher nodeagent platform viewer; do
  for slot in a b; do
    # A letter first: nats-server would read digits as a number.
    password=p$(openssl rand -hex 24)
    login=${user}_$slot
    passwords+="    ${login^^}_PASSWORD: $password"$'\n'
    [ "$slot" = b ] && continue
    users+="---
apiVersion: v1
kind: Secret
metadata: {name: nats-user-$user, namespace: $namespace}
type: Opaque
stringData:
  password: $user.$slot:$password
"
  done
done
cat <<SECRETS
---
apiVersion: v1
kind: Secret
metadata: {name: nats-passwords, namespace: $namespace}
type: Opaque
stringData:
  passwords.conf: |
$passwords$users
SECRETS
