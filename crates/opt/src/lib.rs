//! Passes and analyses over the Loop IR. One pass, one file, one function.
