"""Pages in a real browser. Skipped where Chromium or axe is missing."""
