//! The tests of all backends, by OpenCL. They are left out where there is no device.

ferrozyme_conformance::backend_tests!(ferrozyme_opencl::OpenCl::default());
