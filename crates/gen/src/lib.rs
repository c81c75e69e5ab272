//! Random programs and the laws they must keep.
