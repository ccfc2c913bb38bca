"""Real agents, with the scripted model in the place of a real one."""
