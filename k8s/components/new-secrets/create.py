"""Makes the Secrets of NATS by secrets.sh beside it and creates them, once.

What a run that was cut off left is made anew: keys and passwords belong together. The
last Secret that is written says that all are there. Run by the Job new-secrets.
"""

import json
import os
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import yaml

SCRIPTS = Path(__file__).parent
ACCOUNT = Path(
    os.environ.get("ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount")
)
HOST = os.environ["KUBERNETES_SERVICE_HOST"]
SERVER = f"https://[{HOST}]" if ":" in HOST else f"https://{HOST}"
SERVER += f":{os.environ['KUBERNETES_SERVICE_PORT']}"
LAST = "authcallout-keys"


def main() -> None:
    secrets = f"/api/v1/namespaces/{os.environ['NAMESPACE']}/secrets"
    if ask("GET", f"{secrets}/{LAST}"):
        sys.exit("new-secrets: all Secrets are there")
    for made in make():
        name = made["metadata"]["name"]
        where = f"{secrets}/{name}?fieldManager=new-secrets&force=true"
        ask("PATCH", where, made)
        print(f"new-secrets: {name}")


def make() -> list:
    with tempfile.TemporaryDirectory() as scratch:
        command = ["bash", str(SCRIPTS / "secrets.sh"), f"{scratch}/made", "new"]
        subprocess.run(command, check=True)
        documents = [
            document
            for path in Path(scratch).glob("made/*.yaml")
            for document in yaml.safe_load_all(path.read_bytes())
            if document
        ]
    return sorted(documents, key=lambda each: each["metadata"]["name"] == LAST)


def ask(method: str, path: str, body: object = None) -> bool:
    """Ask the API server; False if what is asked for is not there."""
    request = urllib.request.Request(SERVER + path, method=method)
    request.add_header("Authorization", f"Bearer {(ACCOUNT / 'token').read_text()}")
    request.add_header("Content-Type", "application/apply-patch+yaml")
    request.data = None if body is None else json.dumps(body).encode()
    context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    try:
        with urllib.request.urlopen(request, context=context, timeout=30):
            return True
    except urllib.error.HTTPError as refused:
        if refused.code == 404 and method == "GET":
            return False
        sys.exit(f"new-secrets: {method} {path}: {refused.read().decode()}")


if __name__ == "__main__":
    main()
