"""The five papers that greylag implements, reproduced: a folder a paper, on the kinds of data that the paper uses."""
