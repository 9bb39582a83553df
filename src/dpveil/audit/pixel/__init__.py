"""How pixel methods are audited: versions, small images, gates, and a file for each method."""
