//! The tests of all backends, on this processor.

ferrozyme_conformance::backend_tests!(ferrozyme_cpu::Cpu);
