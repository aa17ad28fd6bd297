"""What is left to do once gates are open: growth, repairs, pods made anew, the end."""
