//! Enums by value whose word is a float in one variant and an address in another: chosen by branches, swapped, returned, collected, and moved through functions. A compiler hands such words on as floats, as pointers, or as
//! integers.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::Field;
use std::rc::Rc;

#[derive(Clone)]
enum Word {
    Number(f64),
    Boxed(Box<f64>),
}

impl Word {
    fn of(x: f64, boxed: bool) -> Word {
        match boxed {
            true => Word::Boxed(Box::new(x)),
            false => Word::Number(x),
        }
    }

    fn value(&self) -> f64 {
        match self {
            Word::Number(x) => x * x + x,
            Word::Boxed(x) => 4.0 * **x,
        }
    }
}

/// The derivative of [`Word::value`].
fn slope(x: f64, boxed: bool) -> f64 {
    if boxed { 4.0 } else { 2.0 * x + 1.0 }
}

/// The elements at even places are numbers, the others are boxed.
fn slopes(x: &[f64]) -> Vec<f64> {
    let slopes = x.iter().enumerate();
    slopes.map(|(i, &x)| slope(x, i % 2 == 1)).collect()
}

const POINTS: [&[f64]; 3] = [&[0.7, -0.3], &[0.7, -0.3, 1.5, 0.2, -2.0], &[0.25]];

macro_rules! words {
    ($($test:ident, $function:ident, $reverse:ident, $forward:ident, $x:ident, $body:block)*) => {$(
        #[autodiff_reverse($reverse, Duplicated, Active)]
        #[autodiff_forward($forward, Dual, Dual)]
        fn $function($x: &[f64]) -> f64 $body

        #[test]
        fn $test() {
            let mut field = Field::new(stringify!($function), $function)
                .reverse($reverse)
                .forward($forward)
                .closed_form(slopes);
            for x in POINTS {
                field = field.check(x);
            }
        }
    )*};
}

#[inline(never)]
fn put(word: Word, list: &mut Vec<Word>, sum: &mut f64) {
    if let Word::Number(x) = &word {
        *sum += x;
    }
    list.push(word);
}

#[inline(never)]
fn replace(word: &mut Word, place: &mut Option<Word>, sum: &mut f64) {
    let word = std::mem::replace(word, Word::Number(0.0));
    if let Word::Number(x) = word {
        *sum += x;
    }
    *place = Some(word);
}

#[inline(never)]
fn choose(first: bool, one: Word, other: Word) -> Word {
    if first { one } else { other }
}

fn total(words: &[Word]) -> f64 {
    words.iter().map(Word::value).sum()
}

words! {
    chosen_by_a_branch, branched, d_branched, f_branched, x, {
        let mut sum = 0.0;
        for i in 0..x.len() {
            sum += Word::of(x[i], i % 2 == 1).value();
        }
        sum
    }
    put_into_a_list, listed, d_listed, f_listed, x, {
        let (mut list, mut numbers) = (Vec::new(), 0.0);
        for i in 0..x.len() {
            put(Word::of(x[i], i % 2 == 1), &mut list, &mut numbers);
        }
        let even: f64 = x.iter().step_by(2).sum();
        total(&list) + numbers - even
    }
    replaced_in_a_place, replaced, d_replaced, f_replaced, x, {
        let (mut sum, mut numbers) = (0.0, 0.0);
        for i in 0..x.len() {
            let mut place = [None, None];
            let mut word = Word::of(x[i], i % 2 == 1);
            replace(&mut word, &mut place[i % 2], &mut numbers);
            let words: Vec<Word> = place.into_iter().flatten().collect();
            sum += total(&words) + word.value();
        }
        let even: f64 = x.iter().step_by(2).sum();
        sum + numbers - even
    }
    returned_by_a_function, returned, d_returned, f_returned, x, {
        let mut sum = 0.0;
        for i in 0..x.len() {
            let boxed = i % 2 == 1;
            let none = Word::of(0.0, !boxed);
            sum += match i % 3 {
                0 => choose(true, Word::of(x[i], boxed), none),
                _ => choose(false, none, Word::of(x[i], boxed)),
            }
            .value();
        }
        sum
    }
    carried_by_a_loop, carried, d_carried, f_carried, x, {
        let mut last = Word::Number(0.0);
        let mut sum = 0.0;
        for i in 0..x.len() {
            sum += last.value();
            last = Word::of(x[i], i % 2 == 1);
        }
        sum + last.value()
    }
    counted_or_shared, shared, d_shared, f_shared, x, {
        enum Kept<'a> {
            Own(f64),
            Shared(Rc<f64>),
            Borrowed(&'a f64),
        }
        let mut kept = Vec::new();
        for i in 0..x.len() {
            kept.push(match i % 4 {
                0 | 2 => Kept::Own(x[i] * x[i]),
                1 => Kept::Shared(Rc::new(x[i])),
                _ => Kept::Borrowed(&x[i]),
            });
        }
        let mut sum = 0.0;
        while let Some(one) = kept.pop() {
            let i = kept.len();
            let one = match one {
                Kept::Own(square) if i == 2 => Kept::Own(square + x[i]),
                other => other,
            };
            sum += match one {
                Kept::Own(value) if i == 2 => value,
                Kept::Own(value) => value + x[i],
                Kept::Shared(value) => 4.0 * *value,
                Kept::Borrowed(value) => 4.0 * *value,
            };
        }
        sum
    }
    in_a_record, recorded, d_recorded, f_recorded, x, {
        #[derive(Clone)]
        struct Record {
            scale: f64,
            word: Word,
            name: usize,
        }
        let mut best: Option<Record> = None;
        let mut sum = 0.0;
        for i in 0..x.len() {
            let record = Record {
                scale: 1.0,
                word: Word::of(x[i], i % 2 == 1),
                name: i,
            };
            if let Some(before) = best.take() {
                sum += before.scale * before.word.value();
            }
            best = match record.name % 3 {
                0 => Some(record.clone()),
                _ => Some(Record { scale: record.scale, ..record }),
            };
        }
        sum + best.map_or(0.0, |record| record.word.value())
    }
    options_of_boxes_and_numbers, optional, d_optional, f_optional, x, {
        let mut sum = 0.0;
        let mut held: Result<f64, Box<f64>> = Ok(0.0);
        for i in 0..x.len() {
            let next = match i % 2 {
                0 => Ok(x[i]),
                _ => Err(Box::new(x[i])),
            };
            let before = std::mem::replace(&mut held, next);
            sum += before.map_or_else(|boxed| 4.0 * *boxed, |x| x * x + x);
        }
        sum + match held {
            Ok(x) => x * x + x,
            Err(boxed) => 4.0 * *boxed,
        }
    }
}
