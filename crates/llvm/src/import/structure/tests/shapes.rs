//! Common shapes come out clean.
