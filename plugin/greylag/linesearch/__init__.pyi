from .data import RankingData as RankingData
from .objectives import Objective as Objective
