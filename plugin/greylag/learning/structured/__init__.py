"""Structured prediction: models, which define predictions, and learners, which find their weights.

A model predicts an object, such as a set of documents, from weighted joint features. Every learner works with every
model that has the methods it needs.
"""
