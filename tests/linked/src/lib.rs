//! Tensor graphs that were compiled in the build script, to be tested.

ferrozyme_linked::include_graph!("training");
ferrozyme_linked::include_graph!("kinds");
ferrozyme_linked::include_graph!("calling");
