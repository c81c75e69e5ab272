//! Trait objects that are made inside: clones of objects of several types, trees whose methods make trees.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::Field;

trait Term {
    fn value(&self, x: f64) -> f64;
    fn boxed_clone(&self) -> Box<dyn Term>;
}

#[derive(Clone)]
struct Linear {
    slope: f64,
}

#[derive(Clone)]
struct Polynomial {
    coefficients: Vec<f64>,
}

impl Term for Linear {
    fn value(&self, x: f64) -> f64 {
        self.slope * x
    }
    fn boxed_clone(&self) -> Box<dyn Term> {
        Box::new(self.clone())
    }
}

impl Term for Polynomial {
    fn value(&self, x: f64) -> f64 {
        self.coefficients
            .iter()
            .rev()
            .fold(0.0, |sum, c| sum * x + c)
    }
    fn boxed_clone(&self) -> Box<dyn Term> {
        Box::new(self.clone())
    }
}

#[autodiff_reverse(d_cloned_terms, Duplicated, Active)]
#[autodiff_forward(f_cloned_terms, Dual, Dual)]
fn cloned_terms(w: &[f64]) -> f64 {
    let terms: Vec<Box<dyn Term>> = vec![
        Box::new(Linear { slope: w[0] }),
        Box::new(Polynomial {
            coefficients: vec![w[0], w[1] * w[2], 0.5],
        }),
    ];
    let clones: Vec<Box<dyn Term>> = terms.iter().map(|term| term.boxed_clone()).collect();
    let both = terms.iter().zip(&clones);
    both.map(|(term, clone)| term.value(0.5) * clone.value(w[1]))
        .sum()
}

#[test]
fn clones_of_objects_of_several_types() {
    Field::new("cloned terms", cloned_terms)
        .reverse(d_cloned_terms)
        .forward(f_cloned_terms)
        .check(&[0.7, 1.3, 0.4]);
}

trait Expression {
    fn value(&self, x: f64) -> f64;
    fn derivative(&self) -> Box<dyn Expression>;
    fn copy(&self) -> Box<dyn Expression>;
}

struct Number(f64);
struct Variable;
struct Product(Box<dyn Expression>, Box<dyn Expression>);
struct Sum(Box<dyn Expression>, Box<dyn Expression>);

impl Expression for Number {
    fn value(&self, _: f64) -> f64 {
        self.0
    }
    fn derivative(&self) -> Box<dyn Expression> {
        Box::new(Number(0.0))
    }
    fn copy(&self) -> Box<dyn Expression> {
        Box::new(Number(self.0))
    }
}

impl Expression for Variable {
    fn value(&self, x: f64) -> f64 {
        x
    }
    fn derivative(&self) -> Box<dyn Expression> {
        Box::new(Number(1.0))
    }
    fn copy(&self) -> Box<dyn Expression> {
        Box::new(Variable)
    }
}

impl Expression for Product {
    fn value(&self, x: f64) -> f64 {
        self.0.value(x) * self.1.value(x)
    }
    fn derivative(&self) -> Box<dyn Expression> {
        let left = Product(self.0.derivative(), self.1.copy());
        let right = Product(self.0.copy(), self.1.derivative());
        Box::new(Sum(Box::new(left), Box::new(right)))
    }
    fn copy(&self) -> Box<dyn Expression> {
        Box::new(Product(self.0.copy(), self.1.copy()))
    }
}

impl Expression for Sum {
    fn value(&self, x: f64) -> f64 {
        self.0.value(x) + self.1.value(x)
    }
    fn derivative(&self) -> Box<dyn Expression> {
        Box::new(Sum(self.0.derivative(), self.1.derivative()))
    }
    fn copy(&self) -> Box<dyn Expression> {
        Box::new(Sum(self.0.copy(), self.1.copy()))
    }
}

/// a·x·x + b·x, and its slope as another tree.
#[autodiff_reverse(d_symbolic, Duplicated, Active)]
#[autodiff_forward(f_symbolic, Dual, Dual)]
fn symbolic(w: &[f64]) -> f64 {
    let square = Product(Box::new(Variable), Box::new(Variable));
    let first = Product(Box::new(Number(w[0])), Box::new(square));
    let second = Product(Box::new(Number(w[1])), Box::new(Variable));
    let formula = Sum(Box::new(first), Box::new(second));
    formula.value(w[2]) * formula.derivative().value(w[2])
}

#[test]
fn trees_whose_methods_make_trees() {
    Field::new("symbolic", symbolic)
        .reverse(d_symbolic)
        .forward(f_symbolic)
        .closed_form(|w| {
            let (a, b, x) = (w[0], w[1], w[2]);
            let (y, dy) = (a * x * x + b * x, 2.0 * a * x + b);
            vec![x * x * dy + y * 2.0 * x, x * dy + y, dy * dy + y * 2.0 * a]
        })
        .check(&[0.7, 1.3, 0.4]);
}
