from .gain import InformationGainSelection as InformationGainSelection
from .gain import information_gain as information_gain
from .koller_sahami import KollerSahamiSelection as KollerSahamiSelection
from .mmr import MMRFeatureSelection as MMRFeatureSelection
