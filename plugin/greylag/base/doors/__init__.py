"""The doors: one function a kind of others' values, which makes our value of any form of it.

Files come in through the readers of `greylag.evaluation`, which take these forms, too.
"""
