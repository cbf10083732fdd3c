"""For the user's eyes and disk: pictures of graphs, profiles, files."""
