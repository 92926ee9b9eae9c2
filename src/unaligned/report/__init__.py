"""A comparison as one HTML file without dependencies."""

from .page import write_report

__all__ = ["write_report"]
