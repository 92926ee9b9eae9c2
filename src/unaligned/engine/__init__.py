"""Where work runs: threads, processes, or a Dask cluster."""

from .base import Engine as Engine
from .base import EngineLike as EngineLike
from .base import Task as Task
from .base import check_stop as check_stop
from .base import collect as collect
from .base import interruptible as interruptible
from .base import resolve_engine as resolve_engine
from .base import run as run
from .base import steps as steps
from .base import subtask as subtask
from .blas import available_cores as available_cores
from .blas import blas_libraries as blas_libraries
from .blas import limited_blas as limited_blas
from .blas import one_blas as one_blas
from .blas import resolve_jobs as resolve_jobs
from .threads import Threads as Threads
