"""What the program costs, as ratios to a peer that is measured in the same run (`make bench`)."""
