//! Windows that move along axes, for convolutions and pooling.

use ferrozyme_graph::{Graph, Padding, Stretch, Tensor, TensorType};

/// A window along one axis.
///
/// ```
/// use ferrozyme_nn::Window;
/// let window = Window::of(3).with_stride(2).with_padding(1);
/// assert_eq!(window.positions(28), Some(14));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    size: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
}

impl Window {
    /// Of so many neighbours, one position after the other, without padding.
    ///
    /// # Panics
    /// If there are none.
    #[track_caller]
    pub fn of(size: usize) -> Window {
        assert!(size > 0, "a window has at least one element");
        Window {
            size,
            stride: 1,
            padding: 0,
            dilation: 1,
        }
    }

    /// Moves by so many elements.
    ///
    /// # Panics
    /// If it does not move.
    #[track_caller]
    #[must_use]
    pub fn with_stride(self, stride: usize) -> Window {
        assert!(stride > 0, "a window must move");
        Window { stride, ..self }
    }

    /// Also goes over so many elements before the first and after the last.
    #[must_use]
    pub fn with_padding(self, padding: usize) -> Window {
        Window { padding, ..self }
    }

    /// Its elements are so far apart.
    ///
    /// # Panics
    /// If all are the same.
    #[track_caller]
    #[must_use]
    pub fn with_dilation(self, dilation: usize) -> Window {
        assert!(dilation > 0, "the elements of a window differ");
        Window { dilation, ..self }
    }

    /// How many elements it has.
    pub fn size(self) -> usize {
        self.size
    }

    /// How many positions it has on an axis of this size; none if it does not fit.
    pub fn positions(self, size: usize) -> Option<usize> {
        let covered = self.dilation * (self.size - 1) + 1;
        let padded = size + 2 * self.padding;
        Some(padded.checked_sub(covered)? / self.stride + 1)
    }
}

/// The same along each axis.
macro_rules! along_each {
    ($($axes:literal)*) => {
        $(
            impl From<Window> for [Window; $axes] {
                fn from(window: Window) -> [Window; $axes] {
                    [window; $axes]
                }
            }
        )*
    };
}

along_each! { 1 2 3 }

/// For windows along the last axes of a tensor, the elements of all windows: the axes of the windows are inserted at `at`, before those axes, which become those of positions.
/// Elements of the padding are `outside`.
///
/// Slices of the tensor, one per element of a window, are put together along one axis after the other: a window of 5 by 5 has 10 parts, not 25.
#[track_caller]
pub(crate) fn windows(
    g: &mut Graph,
    x: Tensor,
    windows: &[Window],
    at: usize,
    outside: f64,
) -> Tensor {
    // The last axis first: each one inserts an axis before it, so that the next one is where this one was.
    let axis = g.ty(x).shape.len() - 1;
    windows
        .iter()
        .rev()
        .fold(x, |x, &window| along(g, x, axis, window, at, outside))
}

#[track_caller]
fn along(g: &mut Graph, x: Tensor, axis: usize, window: Window, at: usize, outside: f64) -> Tensor {
    let size = g.ty(x).shape[axis];
    let Some(positions) = window.positions(size) else {
        panic!("{window:?} does not fit into axis {axis} of {}", g.ty(x));
    };
    let padded = padded(g, x, axis, window.padding, outside);
    let shape = g.ty(padded).shape.clone();
    let mut inserted = shape.to_vec();
    inserted[axis] = positions;
    inserted.insert(at, 1);
    let mut parts = Vec::new();
    for element in 0..window.size {
        let start = element * window.dilation;
        let mut stretches: Vec<Stretch> = shape.iter().map(|&size| Stretch::all(size)).collect();
        stretches[axis] = Stretch {
            start,
            end: start + (positions - 1) * window.stride + 1,
            step: window.stride,
        };
        let part = g.slice(padded, &stretches);
        parts.push(g.reshape(part, &inserted[..]));
    }
    g.concat(&parts, at)
}

/// A tensor with so many more elements at both ends of an axis.
fn padded(g: &mut Graph, x: Tensor, axis: usize, padding: usize, outside: f64) -> Tensor {
    if padding == 0 {
        return x;
    }
    let ty = g.ty(x).clone();
    let mut paddings = vec![Padding::default(); ty.shape.len()];
    paddings[axis] = Padding {
        low: padding,
        high: padding,
        between: 0,
    };
    let with_zeros = g.pad(x, &paddings);
    if outside == 0.0 {
        return with_zeros;
    }
    let inside = vec![0.0; ty.shape[axis]];
    let outside = vec![outside; padding];
    let column = vec![1; ty.shape.len() - axis - 1];
    let mut shape = vec![inside.len() + 2 * padding];
    shape.extend(column);
    let rim = g.constant(
        TensorType::new(ty.element, &shape[..]),
        [&outside[..], &inside, &outside].concat(),
    );
    g.add(with_zeros, rim)
}
