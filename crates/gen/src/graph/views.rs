//! Views, and indexing by tensors.

use super::{LARGEST, Maker};
use ferrozyme_graph::{INDEX, Padding, Stretch, Tensor, TensorType};

impl Maker {
    pub(super) fn view(&mut self) -> Option<Tensor> {
        let tensor = self.pick();
        let shape = self.shape_of(tensor);
        let rank = shape.len();
        match self.random.below(7) {
            0 => {
                let mut axes: Vec<usize> = (0..rank).collect();
                for at in (1..rank).rev() {
                    let other = self.random.below(at + 1);
                    axes.swap(at, other);
                }
                Some(self.g.permute(tensor, &axes))
            }
            1 => match shape.count() {
                count if count % 2 == 0 => Some(self.g.reshape(tensor, [2, count / 2])),
                count => Some(self.g.reshape(tensor, [count, 1])),
            },
            2 => {
                let axis = self.random.below(rank + 1);
                let size = 1 + self.random.below(3);
                let fits = shape.count() * size <= LARGEST && rank < 5;
                fits.then(|| self.g.broadcast(tensor, &[(axis, size)]))
            }
            3 => {
                let mut stretch = |&size: &usize| {
                    let start = self.random.below(size);
                    Stretch {
                        start,
                        end: start + 1 + self.random.below(size - start),
                        step: 1 + self.random.below(2),
                    }
                };
                let stretches: Vec<Stretch> = shape.iter().map(&mut stretch).collect();
                Some(self.g.slice(tensor, &stretches))
            }
            4 => {
                let mut padding = |_: &usize| Padding {
                    low: self.random.below(2),
                    high: self.random.below(2),
                    between: self.random.below(2),
                };
                let paddings: Vec<Padding> = shape.iter().map(&mut padding).collect();
                let sizes = paddings.iter().zip(shape.iter());
                let count: usize = sizes.map(|(padding, &size)| padding.size(size)).product();
                (count <= LARGEST).then(|| self.g.pad(tensor, &paddings))
            }
            5 if rank > 0 && shape.count() * 2 <= LARGEST => {
                let other = self.like(tensor);
                let axis = self.random.below(rank);
                Some(self.g.concat(&[tensor, other], axis))
            }
            _ if rank > 0 => self.index(tensor),
            _ => None,
        }
    }

    /// Elements that constant indices name, and perhaps back again.
    fn index(&mut self, tensor: Tensor) -> Option<Tensor> {
        let shape = self.shape_of(tensor);
        let axis = self.random.below(shape.len());
        let count = 1 + self.random.below(3);
        if shape.count() / shape[axis] * count > LARGEST {
            return None;
        }
        let indices = (0..count).map(|_| self.random.below(shape[axis]) as f64);
        let indices: Vec<f64> = indices.collect();
        let indices = match count {
            1 => self.g.constant(TensorType::scalar(INDEX), indices[0]),
            _ => self.g.constant(TensorType::new(INDEX, [count]), indices),
        };
        let chosen = self.g.gather(tensor, indices, axis);
        if self.random.percent(50) {
            return Some(chosen);
        }
        let values = self.g.cos(chosen);
        Some(self.g.scatter_add(tensor, indices, values, axis))
    }
}
