//! Restores memory that a function has changed.

/// A value that can be saved and restored, so that a function that changes it can be called again.
#[diagnostic::on_unimplemented(
    message = "reverse mode with a width needs to save and restore `{Self}`, which is not `Clone`",
    note = "gradients are computed one after the other, and the function may change the value",
    note = "derive `Clone` for it, or leave the width out and call the derivative several times"
)]
pub trait Restore {
    /// The saved state.
    type Saved;

    /// Saves it.
    fn save(&self) -> Self::Saved;

    /// Restores it.
    fn restore(&mut self, saved: &Self::Saved);
}

impl<T: Clone> Restore for T {
    type Saved = T;

    fn save(&self) -> T {
        self.clone()
    }

    fn restore(&mut self, saved: &T) {
        self.clone_from(saved);
    }
}

impl<T: Clone> Restore for [T] {
    type Saved = Vec<T>;

    fn save(&self) -> Vec<T> {
        self.to_vec()
    }

    fn restore(&mut self, saved: &Vec<T>) {
        self.clone_from_slice(saved);
    }
}
