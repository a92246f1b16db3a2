"""How much of a net's accuracy eight bits cost, in the form for the mapper and in the plain one."""
