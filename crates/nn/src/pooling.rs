//! Pooling: one number for each window.

use crate::window::windows;
use crate::{Layer, Mode, Module, Window};
use ferrozyme_graph::{Graph, Reduction, Tensor};

/// [`MaxPool`] over the last axis.
pub type MaxPool1d = MaxPool<1>;
/// [`MaxPool`] over the last two axes.
pub type MaxPool2d = MaxPool<2>;
/// [`AvgPool`] over the last axis.
pub type AvgPool1d = AvgPool<1>;
/// [`AvgPool`] over the last two axes.
pub type AvgPool2d = AvgPool<2>;

/// The largest element of each window along the last axes. Elements of the padding are never the largest; of equal ones the first has the gradient.
#[derive(Clone, Copy, Debug, Module)]
pub struct MaxPool<const AXES: usize> {
    #[module(skip)]
    windows: [Window; AXES],
}

/// The mean of each window along the last axes. Elements of the padding are zeros, which count.
#[derive(Clone, Copy, Debug, Module)]
pub struct AvgPool<const AXES: usize> {
    #[module(skip)]
    windows: [Window; AXES],
}

/// Windows that do not overlap: the stride is the size.
fn side_by_side<const AXES: usize>(sizes: [usize; AXES]) -> [Window; AXES] {
    sizes.map(|size| Window::of(size).with_stride(size))
}

impl<const AXES: usize> MaxPool<AXES> {
    /// With these windows.
    pub fn new(windows: impl Into<[Window; AXES]>) -> MaxPool<AXES> {
        let windows = windows.into();
        MaxPool { windows }
    }

    /// With windows of these sizes that do not overlap.
    #[track_caller]
    pub fn of(sizes: [usize; AXES]) -> MaxPool<AXES> {
        MaxPool::new(side_by_side(sizes))
    }
}

impl<const AXES: usize> AvgPool<AXES> {
    /// With these windows.
    pub fn new(windows: impl Into<[Window; AXES]>) -> AvgPool<AXES> {
        let windows = windows.into();
        AvgPool { windows }
    }

    /// With windows of these sizes that do not overlap.
    #[track_caller]
    pub fn of(sizes: [usize; AXES]) -> AvgPool<AXES> {
        AvgPool::new(side_by_side(sizes))
    }
}

#[track_caller]
fn check_axes(g: &Graph, x: Tensor, axes: usize) {
    let ty = g.ty(x);
    assert!(
        ty.shape.len() >= axes,
        "pooling over {axes} axes was given {ty}"
    );
}

impl<const AXES: usize> Layer for MaxPool<AXES> {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, _: Mode) -> Tensor {
        check_axes(g, x, AXES);
        let elements = windows(g, x, &self.windows, 0, f64::NEG_INFINITY);
        let axes: Vec<usize> = (0..AXES).collect();
        g.reduce(Reduction::Max, elements, &axes)
    }
}

impl<const AXES: usize> Layer for AvgPool<AXES> {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, _: Mode) -> Tensor {
        check_axes(g, x, AXES);
        let elements = windows(g, x, &self.windows, 0, 0.0);
        let axes: Vec<usize> = (0..AXES).collect();
        let count: usize = self.windows.iter().map(|window| window.size()).product();
        let sum = g.sum(elements, &axes);
        g.scale(sum, 1.0 / count as f64)
    }
}
