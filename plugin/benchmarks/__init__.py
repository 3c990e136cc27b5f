"""`make bench`: speed as ratios within one run; nothing here is asserted."""
