"""What every other folder uses: checks, the grammar of options, tables and citations."""
