"""Features with learned parameters, which are stored in the file of the model."""
