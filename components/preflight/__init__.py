"""Look-ups and checks before the first resource: whatever is wrong is reported while nothing has changed."""
