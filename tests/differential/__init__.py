"""Random allocation cases, and what may differ between two answers to one."""

from tests.differential.case import generate

__all__ = ["generate"]
