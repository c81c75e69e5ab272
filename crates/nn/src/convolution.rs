//! Convolutions: contractions of weights and windows.

use crate::initial::uniform;
use crate::linear::limit;
use crate::window::windows;
use crate::{Layer, Mode, Module, Window};
use ferrozyme_graph::{Graph, Parameter, Tensor};

/// A convolution over one axis: from `[batch, inputs, length]` to `[batch, outputs, positions]`.
pub type Conv1d = Conv<1>;
/// A convolution over two axes: from `[batch, inputs, height, width]` to `[batch, outputs, …]`.
pub type Conv2d = Conv<2>;

/// A convolution over the last axes, behind batch and channels: sums of the elements of a window times weights, and a bias for each channel of the result.
///
/// ```
/// use ferrozyme_graph::Graph;
/// use ferrozyme_nn::{Conv2d, Layer, Window};
/// let mut g = Graph::new();
/// let layer = Conv2d::new(&mut g, "layer", 1, 8, Window::of(5).with_padding(2).with_stride(2));
/// let x = g.feed("x", [16, 1, 28, 28]);
/// let y = layer.forward(&mut g, x);
/// assert_eq!(g.ty(y).to_string(), "f32[16, 8, 14, 14]");
/// ```
#[derive(Module)]
pub struct Conv<const AXES: usize> {
    weight: Parameter,
    bias: Option<Parameter>,
    #[module(skip)]
    windows: [Window; AXES],
}

impl<const AXES: usize> Conv<AXES> {
    /// With a bias. The parameters are `name.weight`, of shape `[outputs, inputs, window…]`, and `name.bias`. They begin uniform between ±1/√(elements of a window·inputs).
    #[track_caller]
    pub fn new(
        g: &mut Graph,
        name: &str,
        inputs: usize,
        outputs: usize,
        windows: impl Into<[Window; AXES]>,
    ) -> Conv<AXES> {
        let mut layer = Conv::without_bias(g, name, inputs, outputs, windows);
        let bias = format!("{name}.bias");
        let initial = uniform(&bias, [outputs], layer.limit(inputs));
        layer.bias = Some(g.parameter(&bias, [outputs], initial));
        layer
    }

    /// Without a bias.
    #[track_caller]
    pub fn without_bias(
        g: &mut Graph,
        name: &str,
        inputs: usize,
        outputs: usize,
        windows: impl Into<[Window; AXES]>,
    ) -> Conv<AXES> {
        let windows = windows.into();
        let weight = format!("{name}.weight");
        let mut shape = vec![outputs, inputs];
        shape.extend(windows.iter().map(|window| window.size()));
        let elements = shape[1..].iter().product();
        let initial = uniform(&weight, &shape[..], limit(elements));
        Conv {
            weight: g.parameter(&weight, &shape[..], initial),
            bias: None,
            windows,
        }
    }

    fn limit(&self, inputs: usize) -> f64 {
        let elements: usize = self.windows.iter().map(|window| window.size()).product();
        limit(inputs * elements)
    }
}

impl<const AXES: usize> Layer for Conv<AXES> {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, _: Mode) -> Tensor {
        let weight = g.read(self.weight);
        let sizes = g.ty(weight).shape.clone();
        let shape = g.ty(x).shape.clone();
        assert!(
            shape.len() == AXES + 2 && shape[1] == sizes[1],
            "a convolution of {} channels over {AXES} axes was given {}",
            sizes[1],
            g.ty(x)
        );
        // Channels and windows first, then batch and positions: one product of matrices.
        let mut order: Vec<usize> = (0..shape.len()).collect();
        order.swap(0, 1);
        let channels_first = g.permute(x, &order);
        let elements = windows(g, channels_first, &self.windows, 1, 0.0);
        let all = g.ty(elements).shape.clone();
        let (summed, kept) = all.split_at(AXES + 1);
        let (terms, places): (usize, usize) = (summed.iter().product(), kept.iter().product());
        let matrix = g.reshape(elements, [terms, places]);
        let weight = g.reshape(weight, [sizes[0], terms]);
        let product = g.contract("ok,kp->op", weight, matrix);
        let mut result = vec![sizes[0]];
        result.extend(kept);
        let product = g.reshape(product, &result[..]);
        let product = g.permute(product, &order);
        match self.bias {
            None => product,
            Some(bias) => {
                let bias = g.read(bias);
                let mut column = vec![sizes[0]];
                column.extend([1; AXES]);
                let bias = g.reshape(bias, &column[..]);
                g.add(product, bias)
            }
        }
    }
}
