from .base import LearnedFeature as LearnedFeature
from .translation import Translation as Translation
from .trees import Trees as Trees
