"""Baton for Python: enqueue jobs (`Client`) and do them (`Worker`)."""

from .client import Client
from .errors import BatonError, Refused, Unreachable
from .job import Job
from .outcomes import Ask, Fail, Outcome, Park, Release
from .view import JobView, NewJob
from .worker import Worker

__all__ = [
    "Ask",
    "BatonError",
    "Client",
    "Fail",
    "Job",
    "JobView",
    "NewJob",
    "Outcome",
    "Park",
    "Refused",
    "Release",
    "Unreachable",
    "Worker",
]
__version__ = "0.1.0"
