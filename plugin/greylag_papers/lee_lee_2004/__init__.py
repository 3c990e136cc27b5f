"""Lee & Lee (2004): MMR-based feature selection for text categorisation."""
