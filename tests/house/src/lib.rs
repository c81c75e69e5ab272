//! Rules for all source files of the workspace; they are the tests of this package.
