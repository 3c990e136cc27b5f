"""Schiegg, Diego & Hamprecht, Learning diverse models: the Coulomb structured SVM, ECCV 2016."""
