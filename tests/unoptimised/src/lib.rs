//! Nothing but tests: programs that are compiled without optimisation, which the profile of this workspace does not do otherwise.
