//! Containers as crates write them: vectors of fixed capacity, iterators that are one of two, arenas with free lists, persistent lists.

use ferrozyme::autodiff_reverse;
use ferrozyme_programs::Field;
use std::fmt;
use std::mem::MaybeUninit;
use std::rc::Rc;

/// Up to three numbers in place.
struct Few {
    length: u32,
    items: [MaybeUninit<f64>; 3],
}

impl Few {
    fn new() -> Few {
        Few {
            length: 0,
            items: [MaybeUninit::uninit(); 3],
        }
    }

    fn push(&mut self, item: f64) {
        assert!(self.length < 3, "too many");
        self.items[self.length as usize].write(item);
        self.length += 1;
    }
}

/// Gives its items away one by one.
struct FewItems {
    items: Few,
    next: usize,
}

impl Iterator for FewItems {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        if self.next >= self.items.length as usize {
            return None;
        }
        self.next += 1;
        // SAFETY: all below the length are written.
        Some(unsafe { self.items.items[self.next - 1].assume_init() })
    }
}

fn roots_of_cubic(b: f64, c: f64, d: f64) -> Few {
    let mut roots = Few::new();
    let p = (3.0 * c - b * b) / 9.0;
    let q = (9.0 * b * c - 27.0 * d - 2.0 * b * b * b) / 54.0;
    let discriminant = p * p * p + q * q;
    if discriminant >= 0.0 {
        let root = discriminant.sqrt();
        roots.push(-b / 3.0 + (q + root).cbrt() + (q - root).cbrt());
    } else {
        let angle = (q / (-p * p * p).sqrt()).acos();
        for turn in 0..3 {
            let angle = (angle + f64::from(turn) * std::f64::consts::TAU) / 3.0;
            roots.push(2.0 * (-p).sqrt() * angle.cos() - b / 3.0);
        }
    }
    roots
}

#[autodiff_reverse(dinner_roots, Duplicated, Active)]
fn inner_roots(x: &[f64]) -> f64 {
    let mut inner = Few::new();
    let items = roots_of_cubic(x[0], x[1], x[2]);
    for root in (FewItems { items, next: 0 }) {
        if root.abs() < 2.5 {
            inner.push(root);
        }
    }
    let items = FewItems {
        items: inner,
        next: 0,
    };
    items.map(|root| root * root * x[0]).sum()
}

#[test]
fn vectors_of_fixed_capacity() {
    for x in [[0.5, -4.0, 0.9], [1.0, 1.0, -1.0]] {
        Field::new("roots in a vector of fixed capacity", inner_roots)
            .reverse(dinner_roots)
            .check(&x);
    }
}

enum OneOf<L, R> {
    Left(L),
    Right(R),
}

impl<L: Iterator<Item = f64>, R: Iterator<Item = f64>> Iterator for OneOf<L, R> {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        match self {
            OneOf::Left(left) => left.next(),
            OneOf::Right(right) => right.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            OneOf::Left(left) => left.size_hint(),
            OneOf::Right(right) => right.size_hint(),
        }
    }
}

/// One of the two iterators holds addresses where the other has a number.
fn padded(x: &[f64], mirror: bool) -> impl Iterator<Item = f64> + '_ {
    let left = match mirror {
        true => OneOf::Left(x[1..3].iter().rev().copied()),
        false => OneOf::Right(std::iter::repeat_n(x[0] * 0.5, 2)),
    };
    left.chain(x.iter().copied())
}

#[autodiff_reverse(droughness, Duplicated, Const, Active)]
fn roughness(x: &[f64], mirror: bool) -> f64 {
    let all: Vec<f64> = padded(x, mirror).collect();
    let terms = all.windows(3);
    terms.map(|w| (w[0] - 2.0 * w[1] + w[2]).powi(2)).sum()
}

#[test]
fn iterators_that_are_one_of_two() {
    for mirror in [false, true] {
        Field::new("roughness with a boundary", |x| roughness(x, mirror))
            .reverse(|x, dx, seed| droughness(x, dx, mirror, seed))
            .check(&[0.4, -1.0, 2.0, 0.3, 1.1]);
    }
}

/// A part of an arm.
struct Part {
    angle: f64,
    length: f64,
    children: Vec<(usize, u64)>,
}

enum Slot {
    Free { next: Option<usize> },
    Used { generation: u64, part: Part },
}

/// Parts by number and generation. The generation is only copied and compared.
struct Arm {
    slots: Vec<Slot>,
    generation: u64,
    free: Option<usize>,
}

impl Arm {
    fn insert(&mut self, part: Part) -> (usize, u64) {
        let Some(at) = self.free else {
            return self.insert_slowly(part);
        };
        match self.slots[at] {
            Slot::Free { next } => self.free = next,
            Slot::Used { .. } => panic!("the list of free slots is broken"),
        }
        let generation = self.generation;
        self.slots[at] = Slot::Used { generation, part };
        (at, generation)
    }

    #[inline(never)]
    fn insert_slowly(&mut self, part: Part) -> (usize, u64) {
        let (from, to) = (self.slots.len(), 2 * self.slots.len().max(1));
        for at in from..to {
            let next = (at + 1 < to).then_some(at + 1);
            self.slots.push(Slot::Free { next });
        }
        self.free = Some(from);
        self.insert(part)
    }

    fn get(&mut self, (at, wanted): (usize, u64)) -> &mut Part {
        match &mut self.slots[at] {
            Slot::Used { generation, part } if *generation == wanted => part,
            _ => panic!("no such part"),
        }
    }

    fn reach(&mut self, at: (usize, u64), angle: f64, x: f64, y: f64) -> f64 {
        let part = self.get(at);
        let angle = angle + part.angle;
        let (x, y) = (x + part.length * angle.cos(), y + part.length * angle.sin());
        let children = part.children.clone();
        let mut sum = (x - 1.0) * (y - 2.0);
        for child in children {
            sum += self.reach(child, angle, x, y);
        }
        sum
    }
}

#[autodiff_reverse(dpose, Duplicated, Active)]
fn pose(angles: &[f64]) -> f64 {
    let mut arm = Arm {
        slots: Vec::new(),
        generation: 0,
        free: None,
    };
    let mut parts: Vec<(usize, u64)> = Vec::new();
    for (i, &angle) in angles.iter().enumerate() {
        let part = arm.insert(Part {
            angle,
            length: 1.0 / (1.0 + i as f64),
            children: Vec::new(),
        });
        if let Some(&above) = parts.get(i.wrapping_sub(1) / 2) {
            arm.get(above).children.push(part);
        }
        parts.push(part);
    }
    arm.reach(parts[0], 0.0, 0.0, 0.0)
}

#[test]
fn arenas_with_generations() {
    Field::new("pose of an arm in an arena", pose)
        .reverse(dpose)
        .check(&[0.3, -0.6, 0.9, 0.2, -0.4]);
}

/// A persistent tree: branches share their children, leaves hold numbers behind pointers of their own.
enum Tree {
    Branch(Vec<Rc<Tree>>),
    Leaf(Vec<Rc<f64>>),
}

impl Tree {
    fn of(x: &[f64]) -> Tree {
        if x.len() <= 2 {
            return Tree::Leaf(x.iter().copied().map(Rc::new).collect());
        }
        Tree::Branch(
            x.chunks(x.len().div_ceil(2))
                .map(|x| Rc::new(Tree::of(x)))
                .collect(),
        )
    }

    fn with_first(&self, first: f64) -> Tree {
        match self {
            Tree::Leaf(values) => {
                let mut values = values.clone();
                values[0] = Rc::new(first);
                Tree::Leaf(values)
            }
            Tree::Branch(children) => {
                let mut children = children.clone();
                children[0] = Rc::new(children[0].with_first(first));
                Tree::Branch(children)
            }
        }
    }

    fn sum_of_squares(&self) -> f64 {
        match self {
            Tree::Leaf(values) => values.iter().map(|value| **value * **value).sum(),
            Tree::Branch(children) => children.iter().map(|child| child.sum_of_squares()).sum(),
        }
    }
}

#[autodiff_reverse(dversions, Duplicated, Active)]
fn versions(x: &[f64]) -> f64 {
    let before = Tree::of(x);
    let after = before.with_first(x[0] * x[1]);
    before.sum_of_squares() + (0.1 * after.sum_of_squares()).sin()
}

#[test]
fn persistent_trees() {
    Field::new("two versions of a tree", versions)
        .reverse(dversions)
        .check(&[0.5, -0.8, 1.2, 0.3, 0.9]);
}

/// An error that is shown with its causes, each in a text of its own.
struct Causes(Vec<&'static str>);

impl fmt::Debug for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = String::new();
        for cause in &self.0 {
            append(&mut all, cause);
        }
        f.write_str(&all)
    }
}

#[inline(never)]
fn append(text: &mut String, cause: &str) {
    text.push_str(cause);
    text.push('\n');
}

#[inline(never)]
fn root(x: f64) -> Result<f64, Causes> {
    match x < 0.0 {
        true => Err(Causes(vec!["negative"])),
        false => Ok(x.sqrt()),
    }
}

#[autodiff_reverse(droots, Duplicated, Active)]
fn roots(x: &[f64]) -> f64 {
    x.iter().map(|&x| root(x).unwrap()).sum()
}

#[test]
fn errors_that_put_text_together() {
    Field::new("roots or an error", roots)
        .reverse(droots)
        .check(&[0.5, 1.2]);
}
