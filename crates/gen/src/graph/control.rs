//! Loops and branches.

use super::Maker;
use ferrozyme_graph::{FloatPredicate, Graph, INDEX, Scalar, Tensor, TensorType};

impl Maker {
    pub(super) fn region(&mut self) -> Tensor {
        match self.random.percent(60) {
            true => self.repetition(),
            false => self.branch(),
        }
    }

    /// A loop that carries a tensor, and perhaps the sum of its counter.
    fn repetition(&mut self) -> Tensor {
        let count = self.random.below(4) as f64;
        let count = self.g.constant(TensorType::scalar(INDEX), count);
        let mut initial = vec![self.pick()];
        if self.random.percent(30) {
            initial.push(count);
        }
        let mut g = std::mem::take(&mut self.g);
        let results = g.for_loop(count, &initial, |g, iteration, carried| {
            self.inside(g, |maker| {
                let next = maker.body(carried[0]);
                let mut results = vec![next];
                if let Some(&integer) = carried.get(1) {
                    let sum = maker.g.add(integer, iteration);
                    let float = maker.g.cast(sum, Scalar::F64);
                    let tame = maker.g.sin(float);
                    results[0] = maker.g.add(next, tame);
                    results.push(sum);
                }
                results
            })
        });
        self.g = g;
        results[0]
    }

    /// A branch on a comparison of sums.
    fn branch(&mut self) -> Tensor {
        let (a, b, shown) = (self.pick(), self.pick(), self.pick());
        let (a, b) = (self.g.sum_all(a), self.g.sum_all(b));
        // Passes may sum up in another order. Sums of the same numbers must not be compared, or rounding decides.
        let b = self.g.shift(b, 0.37);
        let condition = self.g.compare(FloatPredicate::Olt, a, b);
        let mut g = std::mem::take(&mut self.g);
        // Both closures need the maker, one after the other.
        let maker = std::cell::RefCell::new(&mut *self);
        let body = |g: &mut Graph| {
            let mut maker = maker.borrow_mut();
            maker.inside(g, |maker| vec![maker.body(shown)])
        };
        let results = g.if_else(condition, body, body);
        self.g = g;
        results[0]
    }

    /// Builds with the graph inside one of its regions.
    fn inside(
        &mut self,
        g: &mut Graph,
        build: impl FnOnce(&mut Maker) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        std::mem::swap(&mut self.g, g);
        let pool = self.pool.clone();
        self.depth += 1;
        let results = build(self);
        self.depth -= 1;
        self.pool = pool;
        std::mem::swap(&mut self.g, g);
        results
    }

    /// Some operations on a tensor; the result has its type.
    fn body(&mut self, tensor: Tensor) -> Tensor {
        self.pool.push(tensor);
        for _ in 0..1 + self.random.below(3) {
            self.step();
        }
        let shape = self.shape_of(tensor);
        let made = *self.pool.last().expect("the argument is there");
        let total = self.g.sum_all(made);
        let tame = self.g.sin(total);
        let spread = self.g.broadcast_to(tame, shape);
        let bent = self.g.sin(tensor);
        self.g.add(bent, spread)
    }
}
