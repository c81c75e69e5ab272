//! Random nests: what is raised computes what was there before.

use super::notation::{Condition, Notation, Place, Statement, Term, Trips, Unknown};
use super::raised;

/// The nests of one run of the tests; `FERROZYME_NESTS` asks for another number, `FERROZYME_NESTS=1000000:2000000` for these seeds.
const NESTS: u64 = 3000;

/// Products of these nests are raised from so few iterations on: a nest is then run in little time.
const MIN_TRIPS: i64 = 3;

#[test]
fn raised_nests_compute_the_same() {
    let asked = std::env::var("FERROZYME_NESTS").unwrap_or_default();
    let (from, to) = asked.split_once(':').unwrap_or(("0", &asked));
    let (from, to) = (from.parse().unwrap_or(0), to.parse().unwrap_or(NESTS));
    let (mut contractions, mut left) = (0, 0);
    for seed in from..to {
        let nest = generate(seed);
        let found = std::panic::catch_unwind(|| raised(&nest, MIN_TRIPS));
        match found.unwrap_or_else(|_| panic!("seed {seed}")) {
            0 => left += 1,
            several => contractions += several as u64,
        }
    }
    let nests = to - from;
    // The test is worth nothing if everything is raised, or nothing.
    assert!(contractions > nests / 10, "{contractions} of {nests}");
    assert!(left > nests / 10, "{left} of {nests}");
    println!("{contractions} contractions, {left} nests without one");
}

/// A generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }
}

/// A nest of three to five loops around products of matrices, mostly as they should be, with something odd now and then.
fn generate(seed: u64) -> Notation {
    let mut random = Random(seed);
    let counters: Vec<(char, i64)> = ['i', 'j', 'k', 'l', 'm']
        .into_iter()
        .take(3 + random.below(3))
        .enumerate()
        .map(|(number, counter)| {
            let trips: &[i64] = if number < 3 {
                &[2, 3, 3, 3, 4, 5]
            } else {
                &[1, 2, 3]
            };
            (counter, random.pick(trips))
        })
        .collect();
    let mut order = counters.clone();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at + 1));
    }
    let statements = 1 + random.below(3);
    let mut inner = Vec::new();
    let in_register = random.chance(40);
    let (outer, sums) = match in_register {
        true => order.split_at(order.len() - 1 - random.below(order.len() - 2)),
        false => (&order[..], &order[..0]),
    };
    for number in 0..statements {
        inner.push(product(&mut random, number, outer, sums));
    }
    if random.chance(30) {
        let array = random.pick(&['A', 'B', 'C', 'D']);
        let place = random_place(&mut random, array, outer);
        inner.insert(
            random.below(inner.len() + 1),
            Statement::Assign(place, vec![constant()]),
        );
    }
    let mut body = inner;
    let parameters = if random.chance(30) { 60 } else { 10 };
    for (depth, &(counter, trips)) in outer.iter().enumerate().rev() {
        let shorter = (outer[..depth].iter()).filter(|(_, limit)| *limit <= trips + 1);
        let shorter: Vec<char> = shorter.map(|&(counter, _)| counter).collect();
        let trips = match random.chance(parameters) {
            _ if !shorter.is_empty() && random.chance(6) => Trips::Counter(random.pick(&shorter)),
            true => Trips::Parameter(trips),
            false => Trips::Known(trips),
        };
        body = vec![Statement::For(counter, trips, body)];
        if random.chance(6) {
            let condition = match depth > 0 && random.chance(40) {
                true => Condition::Below(random.pick(&outer[..depth]).0, 2),
                false => Condition::Parameter(random.chance(80)),
            };
            body = vec![Statement::If(condition, body)];
        }
        if depth > 0 && random.chance(20) {
            let array = random.pick(&['A', 'C', 'D']);
            let place = random_place(&mut random, array, &outer[..depth]);
            let at = random.below(2);
            body.insert(at, Statement::Assign(place, vec![constant()]));
        }
    }
    let strides = random.chance(25);
    let unknown = Unknown {
        strides,
        // Strides that are parameters may be negative, which only one of the two extensions is right for.
        narrow: !strides && random.chance(25),
        trips: random.chance(25),
        overlap: (random.chance(35)).then(|| random.chance(40).then(|| random.below(30))),
    };
    Notation { body, unknown }
}

fn constant() -> Term {
    Term {
        negative: false,
        factor: Some(2.0),
        sums: Vec::new(),
        product: Vec::new(),
    }
}

/// A place that some of the counters move, row by row in a random order, now and then with wrong strides.
fn random_place(random: &mut Random, array: char, counters: &[(char, i64)]) -> Place {
    let chosen: Vec<(char, i64)> = (counters.iter().copied())
        .filter(|_| random.chance(60))
        .collect();
    layout(random, array, &chosen)
}

fn layout(random: &mut Random, array: char, counters: &[(char, i64)]) -> Place {
    let mut order = counters.to_vec();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at + 1));
    }
    let mut stride = 1;
    let mut place = Place {
        array,
        terms: Vec::new(),
        base: random.below(3) as i64,
    };
    for (counter, trips) in order {
        if random.chance(10) {
            place.base += stride * (trips - 1);
            place.terms.push((counter, -stride));
        } else {
            place.terms.push((counter, stride));
        }
        stride *= match random.chance(8) {
            true => (trips - 1).max(1),
            false => trips + random.below(2) as i64,
        };
    }
    place
}

/// `C[…] += A[…] * B[…]`, with the counters dealt out to the three.
fn product(
    random: &mut Random,
    number: usize,
    outer: &[(char, i64)],
    sums: &[(char, i64)],
) -> Statement {
    let mut counters: [Vec<(char, i64)>; 3] = Default::default();
    let classes = [
        [true, true, false],
        [true, false, true],
        [false, true, true],
        [true, true, true],
    ];
    // The first counters make a matrix product, in the order of the nest or another one.
    let first = random.below(3);
    for (position, &counter) in outer.iter().enumerate() {
        let odd = random.chance(15);
        let class = match sums.is_empty() {
            _ if odd => random.pick(&classes),
            true if position < 3 => classes[(first + position) % 3],
            false if position < 2 => classes[(first + position) % 2],
            true => random.pick(&classes),
            false => random.pick(&[classes[0], classes[1], classes[3]]),
        };
        for (array, counts) in counters.iter_mut().zip(class) {
            if counts {
                array.push(counter);
            }
        }
    }
    for &counter in sums {
        counters[1].push(counter);
        counters[2].push(counter);
    }
    let destination = match random.chance(85) {
        true => ['C', 'E', 'F'][number],
        false => random.pick(&['A', 'C']),
    };
    let left = if random.chance(90) { 'A' } else { 'C' };
    let place = layout(random, destination, &counters[0]);
    let product = vec![
        layout(random, left, &counters[1]),
        layout(random, 'B', &counters[2]),
    ];
    let term = Term {
        negative: random.chance(20),
        factor: random.chance(20).then_some(3.0),
        sums: (sums.iter())
            .map(|&(counter, trips)| (counter, Trips::Known(trips)))
            .collect(),
        product,
    };
    let old = Term {
        negative: false,
        factor: None,
        sums: Vec::new(),
        product: vec![place.clone()],
    };
    let mut terms = vec![term];
    if random.chance(15) {
        let mut second = terms[0].clone();
        second.negative = random.chance(50);
        second.product[1].array = random.pick(&['D', 'B', 'C']);
        terms.push(second);
    }
    if sums.is_empty() || random.chance(40) {
        terms.insert(0, old);
    }
    if random.chance(15) {
        terms.push(constant());
    }
    if !sums.is_empty() && random.chance(20) {
        let array = random.pick(&['G', 'G', 'A', 'C']);
        let other = random_place(random, array, outer);
        return Statement::Both(place, other, terms);
    }
    Statement::Assign(place, terms)
}
