"""What tests draw by seed or by Hypothesis."""
