"""The loader, and the functions that make batches of samples."""

from common.data.collate import default_collate, default_convert
from common.data.loader import DataLoader
from common.data.worker import get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
