"""The ground of all other rooms: checks, the grammar of options, tables, citations, values of other packages."""
