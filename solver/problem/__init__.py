"""What is to be decided, frozen and hashed; and who may serve whom."""
