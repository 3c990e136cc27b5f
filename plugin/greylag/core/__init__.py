"""The ground of all other folders: checks, the grammar of options, tables and citations."""
