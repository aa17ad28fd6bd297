"""How a decision becomes claims and open gates, or is taken back."""
