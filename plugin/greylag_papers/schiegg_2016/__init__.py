"""Schiegg, Diego & Hamprecht (2016): learning diverse models, the Coulomb structured support vector machine."""
