//! Layers, one after the other.

use crate::{Layer, Mode, Module};
use ferrozyme_graph::{Graph, Tensor};

/// One layer after the other. Its parts are numbered: `0.weight`, `2.weight`.
pub struct Sequential {
    layers: Vec<Box<dyn Layer>>,
}

impl Sequential {
    /// These layers, the first one first: a tuple, or a vector of boxed layers.
    ///
    /// ```
    /// use ferrozyme_graph::Graph;
    /// use ferrozyme_nn::{Linear, Module, Sequential, Tanh};
    /// let mut g = Graph::new();
    /// let net = Sequential::new((Linear::new(&mut g, "first", 2, 8), Tanh, Linear::new(&mut g, "second", 8, 1)));
    /// assert_eq!(net.entries()[2].name, "2.weight");
    /// ```
    pub fn new(layers: impl Into<Layers>) -> Sequential {
        Sequential {
            layers: layers.into().0,
        }
    }
}

/// Layers in their order; made of tuples and vectors.
pub struct Layers(Vec<Box<dyn Layer>>);

impl From<Vec<Box<dyn Layer>>> for Layers {
    fn from(layers: Vec<Box<dyn Layer>>) -> Layers {
        Layers(layers)
    }
}

macro_rules! tuples {
    ($(($($layer:ident)+))*) => {
        $(
            impl<$($layer: Layer + 'static),+> From<($($layer,)+)> for Layers {
                #[allow(non_snake_case, reason = "the variables are named after the types")]
                fn from(($($layer,)+): ($($layer,)+)) -> Layers {
                    Layers(vec![$(Box::new($layer)),+])
                }
            }
        )*
    };
}

tuples! {
    (A)
    (A B)
    (A B C)
    (A B C D)
    (A B C D E)
    (A B C D E F)
    (A B C D E F G)
    (A B C D E F G H)
    (A B C D E F G H I)
    (A B C D E F G H I J)
    (A B C D E F G H I J K)
    (A B C D E F G H I J K L)
}

impl Module for Sequential {
    fn visit(&self, visitor: &mut crate::Visitor) {
        self.layers.visit(visitor);
    }
}

impl Layer for Sequential {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, mode: Mode) -> Tensor {
        let mut x = x;
        for layer in &self.layers {
            x = layer.apply(g, x, mode);
        }
        x
    }
}
