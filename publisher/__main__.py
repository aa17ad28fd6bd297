"""`python -m publisher`: the publisher, configured by `PUBLISHER_` variables."""

from __future__ import annotations

import sys

from contracts.process.main import service_main
from publisher.config import PublisherConfig
from publisher.service import open_service

if __name__ == "__main__":
    sys.exit(service_main("publisher", PublisherConfig, open_service))
