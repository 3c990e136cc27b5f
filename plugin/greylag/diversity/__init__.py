"""Diversification: stages that pick documents greedily, and the model and the candidates of SVM-div.

A file per method, with its gain, its stage and the paper's formula. Ties go to the better rank of the stage before.
Training asks for thousands of sets, so `coverage` has the loop of `greylag.base.greedy` compiled.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
