"""`python -m publisher`: the publisher, configured by `PUBLISHER_` variables."""

from __future__ import annotations

import sys

from publisher.config import PublisherConfig
from publisher.service import open_service
from runtime.main import service_main

if __name__ == "__main__":
    sys.exit(service_main("publisher", PublisherConfig, open_service))
