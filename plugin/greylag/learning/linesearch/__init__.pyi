from .objectives import Objective as Objective
