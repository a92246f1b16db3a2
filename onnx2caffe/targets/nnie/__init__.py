"""Target nnie: what nnie_mapper 1.1 and 1.2 take, as data and predicates."""
