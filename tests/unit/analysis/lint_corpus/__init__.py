"""Small apps, good and bad. The docstring of each says in its last lines what lint is to find: `expect: MS101 …`."""
