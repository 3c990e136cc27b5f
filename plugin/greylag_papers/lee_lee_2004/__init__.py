"""Lee & Lee, MMR-based feature selection for text categorization, HLT-NAACL 2004: the experiments of section 4."""
