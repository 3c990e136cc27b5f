"""Studies beyond the papers: the effects of greylag's stages on each other, on test collections."""
