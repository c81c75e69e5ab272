//! Runs text files as tests.
