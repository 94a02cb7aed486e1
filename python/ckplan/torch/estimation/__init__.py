"""Says before a model is trained how much memory its training needs. See docs/estimate.md."""
