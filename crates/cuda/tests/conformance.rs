//! The tests of all backends, on a GPU. They are left out where there is none.

ferrozyme_conformance::backend_tests!(ferrozyme_cuda::Cuda::default());
