from .cliques import redundant_features as redundant_features
from .counts import FeatureCounts as FeatureCounts
from .derived import Product as Product
from .expansion import relevance_model as relevance_model
from .extract import FeatureExtractor as FeatureExtractor
from .feature import Evidence as Evidence
from .feature import Feature as Feature
from .feature import FeatureUnion as FeatureUnion
from .feature import Supplied as Supplied
from .normalisation import Normalised as Normalised
from .prior import Prior as Prior
from .ranked import ReciprocalRank as ReciprocalRank
from .ranked import RunScore as RunScore
from .ranked import Score as Score
from .similarity import VectorCosine as VectorCosine
from .spec import EXPANSION as EXPANSION
from .spec import FeatureSpec as FeatureSpec
from .spec import candidate_pool as candidate_pool
from .spec import named_pool as named_pool
from .spec import parse_feature as parse_feature
from .spec import parse_features as parse_features
from .spec import unique_features as unique_features
from .stages import StageScore as StageScore
from .stages import StageStep as StageStep
from .weighting import CollectionStatistics as CollectionStatistics
from .weighting import FeatureParameters as FeatureParameters
from .weighting import Profile as Profile

__all__ = [
    "EXPANSION",
    "CollectionStatistics",
    "Evidence",
    "Feature",
    "FeatureCounts",
    "FeatureExtractor",
    "FeatureParameters",
    "FeatureSpec",
    "FeatureUnion",
    "Normalised",
    "Prior",
    "Product",
    "Profile",
    "ReciprocalRank",
    "RunScore",
    "Score",
    "StageScore",
    "StageStep",
    "Supplied",
    "VectorCosine",
    "candidate_pool",
    "named_pool",
    "parse_feature",
    "parse_features",
    "redundant_features",
    "relevance_model",
    "unique_features",
]
