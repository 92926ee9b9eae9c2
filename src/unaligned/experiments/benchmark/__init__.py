"""Which distance for which job? Every distance on every job, with time and memory.

A job is a collection of datasets with labels or values, and a score of their distances. A new job
is one function with the decorator `jobs.job`, in a module that `jobs.MODULES` lists.
"""

from .jobs import JOBS as JOBS
from .jobs import Collection as Collection
from .jobs import job as job
