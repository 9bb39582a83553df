"""How pixel methods are audited: versions, exact distributions of small images, gates, a file for each method."""
