from .combmnz import comb_mnz as comb_mnz
from .combsum import comb_sum as comb_sum
from .reciprocal_rank import reciprocal_rank_fusion as reciprocal_rank_fusion
from .union import FUSIONS as FUSIONS
from .union import GivenRun as GivenRun
from .union import Union as Union
from .union import fuse_runs as fuse_runs
