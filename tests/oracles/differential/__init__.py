"""Random allocation cases, and what may differ between two answers to one."""

from tests.oracles.differential.case import generate

__all__ = ["generate"]
