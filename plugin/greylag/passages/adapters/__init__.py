"""Data from and to the packages that retrieval pipelines are made of.

Importing this package, or a module of it, imports none of them. Values of another form than a function's docstring says
raise `ParameterError`, what cannot be downloaded `CollectionError`, and a package that is not installed
`DependencyError`, each with a line that says what to do.
"""
