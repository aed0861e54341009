"""What tests of other code may use of the local cloud; the rest of the package is its inside (`cloud/TESTING.md`)."""
