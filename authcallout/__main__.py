"""`python -m authcallout`: the auth callout, configured by `AUTHCALLOUT_` variables."""

from __future__ import annotations

import sys

from authcallout.config import AuthCalloutConfig
from authcallout.service import open_service
from runtime.main import service_main

if __name__ == "__main__":
    sys.exit(service_main("authcallout", AuthCalloutConfig, open_service))
