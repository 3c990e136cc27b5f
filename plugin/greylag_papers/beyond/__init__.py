"""Studies beyond the papers: what greylag's stages add to each other on test collections."""
